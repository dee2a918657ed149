/* Airfoil's five loops, for gcc -O3 -march=native: what the benchmarks compare with. */
#include <math.h>

#define GM1 0.4
#define CFL 0.9
#define EPS 0.05

static double pressure(const double *q) {
  return GM1 * (q[3] - 0.5 * (q[1] * q[1] + q[2] * q[2]) / q[0]);
}

static void add_flux(const double *q1, const double *q2, double dx, double dy, double mu, double *f) {
  const double p1 = pressure(q1), p2 = pressure(q2);
  const double v1 = (q1[1] * dy - q1[2] * dx) / q1[0], v2 = (q2[1] * dy - q2[2] * dx) / q2[0];
  f[0] = 0.5 * (v1 * q1[0] + v2 * q2[0]) + mu * (q1[0] - q2[0]);
  f[1] = 0.5 * (v1 * q1[1] + p1 * dy + v2 * q2[1] + p2 * dy) + mu * (q1[1] - q2[1]);
  f[2] = 0.5 * (v1 * q1[2] - p1 * dx + v2 * q2[2] - p2 * dx) + mu * (q1[2] - q2[2]);
  f[3] = 0.5 * (v1 * (q1[3] + p1) + v2 * (q2[3] + p2)) + mu * (q1[3] - q2[3]);
}

void save_soln(long n, const double *restrict q, double *restrict qold) {
  for (long i = 0; i < 4 * n; ++i) qold[i] = q[i];
}

void adt_calc(long n, const int *restrict nodes, const double *restrict x,
              const double *restrict q, double *restrict adt) {
  for (long e = 0; e < n; ++e) {
    const double *s = q + 4 * e, u = s[1] / s[0], v = s[2] / s[0];
    const double c = sqrt((GM1 + 1.0) * pressure(s) / s[0]);
    double total = 0.0;
    for (int k = 0; k < 4; ++k) {
      const double *a = x + 2L * nodes[4 * e + k], *b = x + 2L * nodes[4 * e + (k + 1) % 4];
      const double dx = b[0] - a[0], dy = b[1] - a[1];
      total += fabs(u * dy - v * dx) + c * sqrt(dx * dx + dy * dy);
    }
    adt[e] = total / CFL;
  }
}

/* Sums are stored as they come: with an array between, gcc makes it a fifth slower. */
void res_calc(long n, const int *restrict nodes, const int *restrict cells,
              const double *restrict x, const double *restrict q, const double *restrict adt,
              double *restrict res) {
  for (long e = 0; e < n; ++e) {
    const long left = cells[2 * e], right = cells[2 * e + 1];
    const double *x1 = x + 2L * nodes[2 * e + 1], *x2 = x + 2L * nodes[2 * e];
    const double *q1 = q + 4 * left, *q2 = q + 4 * right;
    double *r1 = res + 4 * left, *r2 = res + 4 * right, f;
    const double dx = x1[0] - x2[0], dy = x1[1] - x2[1];
    const double p1 = pressure(q1), p2 = pressure(q2);
    const double v1 = (q1[1] * dy - q1[2] * dx) / q1[0], v2 = (q2[1] * dy - q2[2] * dx) / q2[0];
    const double mu = 0.5 * EPS * (adt[left] + adt[right]);
    f = 0.5 * (v1 * q1[0] + v2 * q2[0]) + mu * (q1[0] - q2[0]);
    r1[0] += f; r2[0] -= f;
    f = 0.5 * (v1 * q1[1] + p1 * dy + v2 * q2[1] + p2 * dy) + mu * (q1[1] - q2[1]);
    r1[1] += f; r2[1] -= f;
    f = 0.5 * (v1 * q1[2] - p1 * dx + v2 * q2[2] - p2 * dx) + mu * (q1[2] - q2[2]);
    r1[2] += f; r2[2] -= f;
    f = 0.5 * (v1 * (q1[3] + p1) + v2 * (q2[3] + p2)) + mu * (q1[3] - q2[3]);
    r1[3] += f; r2[3] -= f;
  }
}

void bres_calc(long n, const int *restrict nodes, const int *restrict cells,
               const double *restrict x, const double *restrict q, const double *restrict adt,
               double *restrict res, const long long *restrict bound, const double *restrict far) {
  for (long e = 0; e < n; ++e) {
    const long cell = cells[e];
    const double *x1 = x + 2L * nodes[2 * e + 1], *x2 = x + 2L * nodes[2 * e];
    const double dx = x1[0] - x2[0], dy = x1[1] - x2[1];
    double f[4] = {0.0, 0.0, 0.0, 0.0};
    if (bound[e] == 1) {
      const double p = pressure(q + 4 * cell);
      f[1] = p * dy;
      f[2] = -p * dx;
    } else {
      add_flux(q + 4 * cell, far, dx, dy, EPS * adt[cell], f);
    }
    for (int k = 0; k < 4; ++k) res[4 * cell + k] += f[k];
  }
}

void update(long n, const double *restrict qold, double *restrict q, double *restrict res,
            const double *restrict adt, double *restrict rms) {
  double sum = 0.0;
  for (long e = 0; e < n; ++e) {
    for (int k = 0; k < 4; ++k) {
      const double change = res[4 * e + k] / adt[e];
      q[4 * e + k] = qold[4 * e + k] - change;
      res[4 * e + k] = 0.0;
      sum += change * change;
    }
  }
  *rms += sum;
}
