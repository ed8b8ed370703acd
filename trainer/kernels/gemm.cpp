#include "trainer/kernels/gemm.h"

#include <dnnl.hpp>
#include <vector>

#include "runtime/base/status.h"

// Of the OpenMP runtime that oneDNN runs on. Not <omp.h> with -fopenmp: clang would bring a second runtime.
extern "C" int omp_get_max_threads(void);
extern "C" void omp_set_num_threads(int n_threads);

namespace tern::trainer {

namespace {

// oneDNN asks OpenMP how many threads the calling thread may start. The team already owns the cores, so the
// answer must be one; the setting is per thread and is put back for a caller that uses OpenMP itself.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

template <class T>
Product<T> rows_of(Product<T> p, Range rows) {
  p.a.matrix = p.a.transposed ? p.a.matrix.columns(rows.begin, rows.size()) : p.a.matrix.part(rows);
  p.c = p.c.part(rows);
  return p;
}

template <class T>
Product<T> columns_of(Product<T> p, Range columns) {
  p.b.matrix = p.b.transposed ? p.b.matrix.part(columns) : p.b.matrix.columns(columns.begin, columns.size());
  p.c = p.c.columns(columns.begin, columns.size());
  return p;
}

}  // namespace

void multiply(const Product<float>& p) {
  const OneThread guard;
  const Rows<const float>&a = p.a.matrix, &b = p.b.matrix;
  const dnnl_status_t status =
      dnnl_sgemm(p.a.transposed ? 'T' : 'N', p.b.transposed ? 'T' : 'N', p.c.rows, p.c.width, p.k(), p.alpha,
                 a.data, a.stride, b.data, b.stride, p.beta, p.c.data, p.c.stride);
  TERN_CHECK(status == dnnl_success);
}

void multiply(const Product<double>& p) {
  const int64_t n = p.c.width, k = p.k();
  // b as (k, n) without gaps, so that the inner loop runs along rows of b and c
  std::vector<double> b(static_cast<size_t>(k * n));
  for (int64_t x = 0; x < k; ++x)
    for (int64_t j = 0; j < n; ++j)
      b[static_cast<size_t>(x * n + j)] = p.b.transposed ? p.b.matrix.row(j)[x] : p.b.matrix.row(x)[j];
  for (int64_t i = 0; i < p.c.rows; ++i) {
    double* c = p.c.row(i);
    for (int64_t j = 0; j < n; ++j) c[j] = p.beta == 0 ? 0 : p.beta * c[j];
    for (int64_t x = 0; x < k; ++x) {
      const double a = p.alpha * (p.a.transposed ? p.a.matrix.row(x)[i] : p.a.matrix.row(i)[x]);
      for (int64_t j = 0; j < n; ++j) c[j] += a * b[static_cast<size_t>(x * n + j)];
    }
  }
}

template <class T>
void multiply(Team& team, const Product<T>& product) {
  // Cuts at multiples of 48: the register blocks of the AVX-512 and AVX2 kernels divide it.
  constexpr int64_t kGrain = 48;
  if (product.c.rows >= product.c.width || product.c.rows >= kGrain * team.size()) {
    team.for_range(product.c.rows, kGrain, [&](Range rows) { multiply(rows_of(product, rows)); });
  } else {
    team.for_range(product.c.width, kGrain, [&](Range columns) { multiply(columns_of(product, columns)); });
  }
}

template void multiply(Team&, const Product<float>&);
template void multiply(Team&, const Product<double>&);

}  // namespace tern::trainer
