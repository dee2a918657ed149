! Fortran's loop over the edges of Airfoil, to be called from C: for bench_fortran.py.
module airfoil_fluxes
  use airfoil
  implicit none
  type(mp_turns), save :: turns
  integer(c_int32_t), allocatable, save :: nodes(:, :), cells(:, :)

contains

  ! 1 where the plan has been read; else 0, and a reason.
  integer(c_int) function start_in_fortran(path, error) bind(c)
    character(kind=c_char), intent(in) :: path(*)
    character(kind=c_char), intent(inout) :: error(*)
    type(c_ptr) :: plan, of_nodes, of_cells

    start_in_fortran = 0
    plan = mp_open(path, error)
    if (.not. c_associated(plan)) return
    of_nodes = mp_read_map(plan, "edges->nodes" // c_null_char, error)
    if (.not. c_associated(of_nodes)) return
    of_cells = mp_read_map(plan, "edges->cells" // c_null_char, error)
    if (.not. c_associated(of_cells)) return
    nodes = mp_table(of_nodes)
    cells = mp_table(of_cells)
    if (.not. mp_read_turns(plan, "res_calc" // c_null_char, turns, error)) return
    call mp_close(plan)
    start_in_fortran = 1
  end function

  subroutine fluxes_in_fortran(x, q, adt, res) bind(c)
    real(c_double), intent(in) :: x(2, *), q(4, *), adt(*)
    real(c_double), intent(inout) :: res(4, *)
    call add_fluxes(turns, nodes, cells, x, q, adt, res)
  end subroutine
end module
