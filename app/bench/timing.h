// Timing of several tasks in turn, so that a slow moment of the machine hits all of them alike.
#pragma once

#include <functional>
#include <vector>

namespace laconic::app {

/// Middle value (the lower of two). 0 for none.
double median(std::vector<double> values);

/// exp of the mean logarithm; values that are not positive are left out. 0 for none.
double geometric_mean(const std::vector<double>& values);

/// Seconds of one call of f.
double time_once(const std::function<void()>& f);

/// Runs all tasks once to warm up, then `repetitions` rounds over all of them. Returns each task's median seconds.
/// `inner`: calls per measurement, for tasks too short for the clock; the result is per call.
std::vector<double> time_interleaved(const std::vector<std::function<void()>>& tasks, int repetitions, int inner = 1);

}  // namespace laconic::app
