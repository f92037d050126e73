// Whether this was compiled for a sanitizer, under which everything takes ten times as long: tests then try fewer cases
// of a kind, since what the sanitizers look for does not depend on how many there are.
#pragma once

namespace laconic::test {

#if defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

}  // namespace laconic::test
