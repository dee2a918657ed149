! Airfoil's largest loop: the flux through each edge, by the equations of ../kernels/airfoil.py.
module airfoil
  use meshprep
  implicit none
  real(c_double), parameter :: gm1 = 0.4d0, eps = 0.05d0

contains

  ! The flux through one edge from cell 1 into cell 2; values are read before sums are written.
  pure subroutine res_calc(x1, x2, q1, q2, adt1, adt2, res1, res2)
    real(c_double), intent(in) :: x1(2), x2(2), q1(4), q2(4), adt1, adt2
    real(c_double), intent(inout) :: res1(4), res2(4)
    real(c_double) :: dx, dy, p1, p2, v1, v2, mu, f

    dx = x1(1) - x2(1)
    dy = x1(2) - x2(2)
    p1 = pressure(q1)
    p2 = pressure(q2)
    v1 = (q1(2) * dy - q1(3) * dx) / q1(1)
    v2 = (q2(2) * dy - q2(3) * dx) / q2(1)
    mu = 0.5d0 * eps * (adt1 + adt2)
    f = 0.5d0 * (v1 * q1(1) + v2 * q2(1)) + mu * (q1(1) - q2(1))
    res1(1) = res1(1) + f
    res2(1) = res2(1) - f
    f = 0.5d0 * (v1 * q1(2) + p1 * dy + v2 * q2(2) + p2 * dy) + mu * (q1(2) - q2(2))
    res1(2) = res1(2) + f
    res2(2) = res2(2) - f
    f = 0.5d0 * (v1 * q1(3) - p1 * dx + v2 * q2(3) - p2 * dx) + mu * (q1(3) - q2(3))
    res1(3) = res1(3) + f
    res2(3) = res2(3) - f
    f = 0.5d0 * (v1 * (q1(4) + p1) + v2 * (q2(4) + p2)) + mu * (q1(4) - q2(4))
    res1(4) = res1(4) + f
    res2(4) = res2(4) - f
  end subroutine

  pure real(c_double) function pressure(q)
    real(c_double), intent(in) :: q(4)
    pressure = gm1 * (q(4) - 0.5d0 * (q(2) * q(2) + q(3) * q(3)) / q(1))
  end function

  ! The loop over all edges, on the threads of OpenMP.
  subroutine add_fluxes(turns, nodes, cells, x, q, adt, res)
    type(mp_turns), intent(inout) :: turns
    integer(c_int32_t), intent(in) :: nodes(2, *), cells(2, *)
    real(c_double), intent(in) :: x(2, *), q(4, *), adt(*)
    real(c_double), intent(inout) :: res(4, *)
    integer(c_int64_t) :: first, last, e
    integer(c_int32_t) :: n1, n2, c1, c2

    !$omp parallel private(first, last, e, n1, n2, c1, c2)
    do while (mp_next_range(turns, first, last))
      do e = first, last
        n1 = nodes(1, e)
        n2 = nodes(2, e)
        c1 = cells(1, e)
        c2 = cells(2, e)
        call res_calc(x(:, n2), x(:, n1), q(:, c1), q(:, c2), adt(c1), adt(c2), &
                      res(:, c1), res(:, c2))
      end do
    end do
    !$omp end parallel
  end subroutine
end module
