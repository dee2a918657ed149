! Heat flows over edges between cells, in the turns of a plan: docs/solvers/fortran.md
module heat_loops
  use meshprep
  implicit none

contains

  ! What flows through one edge.
  pure subroutine flux(t1, t2, r1, r2)
    real(c_double), intent(in) :: t1, t2
    real(c_double), intent(inout) :: r1, r2
    r1 = r1 + (t2 - t1)
    r2 = r2 - (t2 - t1)
  end subroutine

  subroutine add_fluxes(turns, cells_of, t, r)
    type(mp_turns), intent(inout) :: turns
    integer(c_int32_t), intent(in) :: cells_of(2, *)
    real(c_double), intent(in) :: t(*)
    real(c_double), intent(inout) :: r(*)
    integer(c_int64_t) :: first, last, e
    integer :: c1, c2

    !$omp parallel private(first, last, e, c1, c2)
    do while (mp_next_range(turns, first, last))
      do e = first, last
        c1 = cells_of(1, e)
        c2 = cells_of(2, e)
        call flux(t(c1), t(c2), r(c1), r(c2))
      end do
    end do
    !$omp end parallel
  end subroutine
end module

program heat
  use heat_loops
  implicit none
  character(kind=c_char) :: error(256) ! MP_ERROR
  character(kind=c_char, len=*), parameter :: nul = c_null_char
  type(c_ptr) :: plan, found
  type(mp_set), pointer :: cells
  type(mp_turns) :: turns
  integer(c_int32_t), allocatable :: cells_of(:, :)
  integer(c_int32_t), pointer :: old(:)
  integer(c_int64_t), pointer :: top(:)
  integer(c_int64_t) :: group, size
  real(c_double), allocatable :: t(:), r(:)

  plan = mp_open("square.plan.h5" // nul, error)
  call must_be(c_associated(plan))
  found = mp_read_set(plan, "cells" // nul, error)
  call must_be(c_associated(found))
  call c_f_pointer(found, cells)
  found = mp_read_map(plan, "edges->cells" // nul, error)
  call must_be(c_associated(found))
  cells_of = mp_table(found)
  call must_be(mp_read_turns(plan, "flux" // nul, turns, error))
  call must_be(mp_read_group(plan, "boundary_edges" // nul, "physical" // nul, "top" // nul, &
                             group, error) /= 0)
  found = mp_read_members(plan, "boundary_edges" // nul, "physical" // nul, group, size, error)
  call must_be(c_associated(found))
  call c_f_pointer(found, top, [size])

  call c_f_pointer(cells%new_to_old, old, [cells%size])
  allocate (t(cells%size), r(cells%size))
  t = mod(old, 7) ! values of the input mesh, in the plan's order
  r = 0
  call add_fluxes(turns, cells_of, t, r)
  print "(a, f0.1, a, i0, a)", "sum ", sum(r), ", ", size, " edges on top"
  if (sum(r) /= 0 .or. maxval(abs(r)) == 0) error stop 1
  call mp_free_turns(turns)
  call mp_close(plan)

contains

  subroutine must_be(good)
    logical, intent(in) :: good
    if (good) return
    print *, error(:findloc(error, c_null_char, 1) - 1)
    error stop 1
  end subroutine
end program
