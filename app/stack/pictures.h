// What a stack looks like: the exact result, Laconic's, and their difference.
#pragma once

#include <string>
#include <vector>

#include "stack/measure.h"

namespace laconic::app {

/// Writes exact.png, laconic.png, difference.png (scaled: full colour is the promised bound) and side_by_side.png (all
/// three with captions) into `folder`, which is made. Only the first slab is shown; large images are averaged down.
/// Returns the paths. Throws Failure(no_output).
std::vector<std::string> write_pictures(const StackResult& result, const ImageSet& set, const std::string& folder);

}  // namespace laconic::app
