// The loops of Airfoil: the equations of ../kernels/airfoil.py, once for processors and GPUs.
// Values of a row are read once, so that no read has to wait for a write that might alias.
#ifndef AIRFOIL_KERNELS_HPP
#define AIRFOIL_KERNELS_HPP

#include <cmath>

#ifdef __CUDACC__
#define AIRFOIL __host__ __device__ __forceinline__
#else
#define AIRFOIL inline
#endif

namespace airfoil {

constexpr double gam = 1.4, gm1 = gam - 1.0, cfl = 0.9, eps = 0.05, mach = 0.4;
constexpr long long wall = 1;

struct State {
  double rho, mx, my, energy, p;
};

template <class Q>
AIRFOIL State state(const Q& q) {
  const double rho = q[0], mx = q[1], my = q[2], energy = q[3];
  return {rho, mx, my, energy, gm1 * (energy - 0.5 * (mx * mx + my * my) / rho)};
}

AIRFOIL State free_stream() {
  const double u = mach * std::sqrt(gam);
  const double q[4] = {1.0, u, 0.0, 1.0 / gm1 + 0.5 * u * u};
  return state(q);
}

struct Flux {
  double rho, mx, my, energy;
};

// The mean of both fluxes through (dx, dy), and mu times the difference of the states.
AIRFOIL Flux flux(const State& a, const State& b, double dx, double dy, double mu) {
  const double va = (a.mx * dy - a.my * dx) / a.rho, vb = (b.mx * dy - b.my * dx) / b.rho;
  return {0.5 * (va * a.rho + vb * b.rho) + mu * (a.rho - b.rho),
          0.5 * (va * a.mx + a.p * dy + vb * b.mx + b.p * dy) + mu * (a.mx - b.mx),
          0.5 * (va * a.my - a.p * dx + vb * b.my - b.p * dx) + mu * (a.my - b.my),
          0.5 * (va * (a.energy + a.p) + vb * (b.energy + b.p)) + mu * (a.energy - b.energy)};
}

struct SaveSoln {
  template <class Q, class Qold>
  AIRFOIL void operator()(Q q, Qold qold) const {
    for (int k = 0; k < 4; ++k) qold[k] = q[k];
  }
};

struct AdtCalc {
  template <class A, class B>
  AIRFOIL static double speed(const A& a, const B& b, double u, double v, double c) {
    const double dx = b[0] - a[0], dy = b[1] - a[1];
    return std::fabs(u * dy - v * dx) + c * std::sqrt(dx * dx + dy * dy);
  }

  template <class X, class Q, class Adt>
  AIRFOIL void operator()(X x1, X x2, X x3, X x4, Q q, Adt adt) const {
    const State s = state(q);
    const double u = s.mx / s.rho, v = s.my / s.rho, c = std::sqrt(gam * s.p / s.rho);
    adt[0] = (speed(x1, x2, u, v, c) + speed(x2, x3, u, v, c) + speed(x3, x4, u, v, c) +
              speed(x4, x1, u, v, c)) / cfl;
  }
};

struct ResCalc {
  template <class X, class Q, class Adt, class Res>
  AIRFOIL void operator()(X x1, X x2, Q q1, Q q2, Adt adt1, Adt adt2, Res res1, Res res2) const {
    const double dx = x1[0] - x2[0], dy = x1[1] - x2[1];
    const Flux f = flux(state(q1), state(q2), dx, dy, 0.5 * eps * (adt1[0] + adt2[0]));
    res1[0] += f.rho;
    res2[0] -= f.rho;
    res1[1] += f.mx;
    res2[1] -= f.mx;
    res1[2] += f.my;
    res2[2] -= f.my;
    res1[3] += f.energy;
    res2[3] -= f.energy;
  }
};

struct BresCalc {
  template <class X, class Q, class Adt, class Res, class Bound>
  AIRFOIL void operator()(X x1, X x2, Q q1, Adt adt1, Res res1, Bound bound) const {
    const double dx = x1[0] - x2[0], dy = x1[1] - x2[1];
    const State s = state(q1);
    if (bound[0] == wall) {
      res1[1] += s.p * dy;
      res1[2] -= s.p * dx;
    } else {
      const Flux f = flux(s, free_stream(), dx, dy, eps * adt1[0]);
      res1[0] += f.rho;
      res1[1] += f.mx;
      res1[2] += f.my;
      res1[3] += f.energy;
    }
  }
};

struct Update {
  template <class Qold, class Q, class Res, class Adt, class Rms>
  AIRFOIL void operator()(Qold qold, Q q, Res res, Adt adt, Rms rms) const {
    double sum = 0.0;
    for (int k = 0; k < 4; ++k) {
      const double change = res[k] / adt[0];
      q[k] = qold[k] - change;
      res[k] = 0.0;
      sum += change * change;
    }
    rms[0] += sum;
  }
};

}  // namespace airfoil

#endif  // AIRFOIL_KERNELS_HPP
