! Heat flows over edges between cells, in the blocks of a plan: docs/solvers/fortran.md
program heat
  use meshprep
  implicit none
  character(kind=c_char) :: error(256) ! MP_ERROR
  character(kind=c_char, len=*), parameter :: nul = c_null_char
  type(c_ptr) :: plan, found
  type(mp_set), pointer :: cells
  type(mp_map), pointer :: map
  type(mp_loop), pointer :: flux
  integer(c_int32_t), pointer :: table(:, :), block_order(:), elements(:), old(:)
  integer(c_int64_t), pointer :: block_offset(:), colour_offset(:), top(:)
  integer(c_int64_t) :: colour, k, place, edge, b, c1, c2, group, size
  real(c_double), allocatable :: t(:), r(:)
  real(c_double) :: f

  plan = mp_open("square.plan.h5" // nul, error)
  call must_be(c_associated(plan))
  found = mp_read_set(plan, "cells" // nul, error)
  call must_be(c_associated(found))
  call c_f_pointer(found, cells)
  found = mp_read_map(plan, "edges->cells" // nul, error)
  call must_be(c_associated(found))
  call c_f_pointer(found, map)
  found = mp_read_loop(plan, "flux" // nul, c_null_ptr, error) ! the default blocks
  call must_be(c_associated(found))
  call c_f_pointer(found, flux)
  call must_be(mp_read_group(plan, "boundary_edges" // nul, "physical" // nul, "top" // nul, &
                             group, error) /= 0)
  found = mp_read_members(plan, "boundary_edges" // nul, "physical" // nul, group, size, error)
  call must_be(c_associated(found))
  call c_f_pointer(found, top, [size])

  call c_f_pointer(cells%new_to_old, old, [cells%size])
  call c_f_pointer(map%table, table, [map%arity, map%size])
  call c_f_pointer(flux%block_offset, block_offset, [flux%n_blocks + 1])
  call c_f_pointer(flux%block_colour_offset, colour_offset, [flux%n_block_colours + 1])
  call c_f_pointer(flux%block_order, block_order, [flux%n_blocks])
  nullify (elements) ! some plans list the elements of their blocks
  if (c_associated(flux%elements)) call c_f_pointer(flux%elements, elements, [flux%size])

  allocate (t(cells%size), r(cells%size))
  t = mod(old, 7) ! values of the input mesh, in the plan's order
  r = 0
  do colour = 1, flux%n_block_colours
    !$omp parallel do schedule(dynamic) private(b, place, edge, c1, c2, f)
    do k = colour_offset(colour) + 1, colour_offset(colour + 1)
      b = block_order(k) + 1
      do place = block_offset(b) + 1, block_offset(b + 1)
        edge = place
        if (associated(elements)) edge = elements(place) + 1
        c1 = table(1, edge) + 1
        c2 = table(2, edge) + 1
        f = t(c2) - t(c1)
        r(c1) = r(c1) + f
        r(c2) = r(c2) - f
      end do
    end do
  end do
  print "(a, f0.1, a, i0, a)", "sum ", sum(r), ", ", size, " edges on top"
  if (sum(r) /= 0 .or. maxval(abs(r)) == 0) error stop 1
  call mp_close(plan)

contains

  subroutine must_be(good)
    logical, intent(in) :: good
    if (good) return
    print *, error(:findloc(error, c_null_char, 1) - 1)
    error stop 1
  end subroutine
end program
