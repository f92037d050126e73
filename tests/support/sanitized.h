// Whether this was compiled for a sanitizer, under which everything takes ten times as long: tests then try fewer cases
// of a kind, since what the sanitizers look for does not depend on how many there are.
#pragma once

namespace laconic::test {

#if defined(__has_feature)
constexpr bool thread_sanitized = __has_feature(thread_sanitizer);
constexpr bool sanitized = __has_feature(address_sanitizer) || thread_sanitized;
#else
#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitized = true;
#else
constexpr bool thread_sanitized = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = thread_sanitized;
#endif
#endif

}  // namespace laconic::test
