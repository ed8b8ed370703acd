// Kernels are templates of the element type; these make the two that exist of each and choose among the
// targets that Highway compiled. Args is a template of the element type too: all that the kernel takes.
#pragma once

/// In HWY_NAMESPACE, after the template `kernel`: its instances, under names that HWY_EXPORT can take.
#define TERN_BOTH_FLOATS(kernel, Args)       \
  void kernel##_f32(const Args<float>& a) {  \
    kernel(a);                               \
  }                                          \
  void kernel##_f64(const Args<double>& a) { \
    kernel(a);                               \
  }

/// Under HWY_ONCE: `entry`, the overloads that callers see.
#define TERN_DISPATCH_BOTH_FLOATS(entry, kernel, Args) \
  HWY_EXPORT(kernel##_f32);                            \
  HWY_EXPORT(kernel##_f64);                            \
  void entry(const Args<float>& args) {                \
    HWY_DYNAMIC_DISPATCH(kernel##_f32)(args);          \
  }                                                    \
  void entry(const Args<double>& args) {               \
    HWY_DYNAMIC_DISPATCH(kernel##_f64)(args);          \
  }
