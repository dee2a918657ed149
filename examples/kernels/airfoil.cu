// The loops of Airfoil in CUDA C: the same equations as airfoil.py, for a GPU without numba-cuda.
// Values of a row are read once, so that no read has to wait for a write that might alias. As in
// OP2's kernels a state is divided by once: a quotient takes more registers than anything else.

#define AIRFOIL_GAM 1.4
#define AIRFOIL_GM1 (AIRFOIL_GAM - 1.0)
#define AIRFOIL_CFL 0.9
#define AIRFOIL_EPS 0.05
#define AIRFOIL_MACH 0.4
#define AIRFOIL_WALL 1

struct State {
  double rho, mx, my, energy, p;
};

__device__ __forceinline__ State state(double rho, double mx, double my, double energy) {
  return State{rho, mx, my, energy, AIRFOIL_GM1 * (energy - 0.5 * (1.0 / rho) * (mx * mx + my * my))};
}

__device__ __forceinline__ State state(const double* q) { return state(q[0], q[1], q[2], q[3]); }

struct Flux {
  double rho, mx, my, energy;
};

// The mean of both fluxes through (dx, dy), and mu times the difference of the states.
__device__ __forceinline__ Flux flux(State a, State b, double dx, double dy, double mu) {
  const double va = (1.0 / a.rho) * (a.mx * dy - a.my * dx);
  const double vb = (1.0 / b.rho) * (b.mx * dy - b.my * dx);
  return Flux{
      0.5 * (va * a.rho + vb * b.rho) + mu * (a.rho - b.rho),
      0.5 * (va * a.mx + a.p * dy + vb * b.mx + b.p * dy) + mu * (a.mx - b.mx),
      0.5 * (va * a.my - a.p * dx + vb * b.my - b.p * dx) + mu * (a.my - b.my),
      0.5 * (va * (a.energy + a.p) + vb * (b.energy + b.p)) + mu * (a.energy - b.energy)};
}

__device__ __forceinline__ double side_speed(const double* a, const double* b, double u, double v,
                                             double c) {
  const double dx = b[0] - a[0], dy = b[1] - a[1];
  return fabs(u * dy - v * dx) + c * sqrt(dx * dx + dy * dy);
}

__device__ __forceinline__ void save_soln(const double* q, double* qold) {
  for (int k = 0; k < 4; ++k) qold[k] = q[k];
}

__device__ __forceinline__ void adt_calc(const double* x1, const double* x2, const double* x3,
                                         const double* x4, const double* q, double* adt) {
  const State s = state(q);
  const double u = s.mx / s.rho, v = s.my / s.rho, c = sqrt(AIRFOIL_GAM * s.p / s.rho);
  adt[0] = (side_speed(x1, x2, u, v, c) + side_speed(x2, x3, u, v, c) +
            side_speed(x3, x4, u, v, c) + side_speed(x4, x1, u, v, c)) / AIRFOIL_CFL;
}

__device__ __forceinline__ void res_calc(const double* x1, const double* x2, const double* q1,
                                         const double* q2, const double* adt1, const double* adt2,
                                         double* res1, double* res2) {
  const double dx = x1[0] - x2[0], dy = x1[1] - x2[1];
  const double mu = 0.5 * AIRFOIL_EPS * (adt1[0] + adt2[0]);
  const Flux f = flux(state(q1), state(q2), dx, dy, mu);
  res1[0] += f.rho;
  res2[0] -= f.rho;
  res1[1] += f.mx;
  res2[1] -= f.mx;
  res1[2] += f.my;
  res2[2] -= f.my;
  res1[3] += f.energy;
  res2[3] -= f.energy;
}

__device__ __forceinline__ void bres_calc(const double* x1, const double* x2, const double* q1,
                                          const double* adt1, double* res1,
                                          const long long* bound) {
  const double dx = x1[0] - x2[0], dy = x1[1] - x2[1];
  const State s = state(q1);
  if (bound[0] == AIRFOIL_WALL) {
    res1[1] += s.p * dy;
    res1[2] -= s.p * dx;
  } else {
    const double u = AIRFOIL_MACH * sqrt(AIRFOIL_GAM);
    const State free = state(1.0, u, 0.0, 1.0 / AIRFOIL_GM1 + 0.5 * u * u);
    const Flux f = flux(s, free, dx, dy, AIRFOIL_EPS * adt1[0]);
    res1[0] += f.rho;
    res1[1] += f.mx;
    res1[2] += f.my;
    res1[3] += f.energy;
  }
}

__device__ __forceinline__ void update(const double* qold, double* q, double* res,
                                       const double* adt, double* rms) {
  double sum = 0.0;
  for (int k = 0; k < 4; ++k) {
    const double change = res[k] / adt[0];
    q[k] = qold[k] - change;
    res[k] = 0.0;
    sum += change * change;
  }
  rms[0] += sum;
}
