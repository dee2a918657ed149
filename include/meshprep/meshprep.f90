! What meshprep_plan.h reads, for Fortran, and turns of threads over the ranges of a loop:
! docs/solvers/fortran.md has a program.
module meshprep
  use, intrinsic :: iso_c_binding
  !$ use omp_lib, only: omp_get_num_threads
  implicit none

  type, bind(c) :: mp_set
    integer(c_int64_t) :: size
    type(c_ptr) :: new_to_old, old_to_new
  end type
  type, bind(c) :: mp_map
    integer(c_int64_t) :: size, arity, to_size
    type(c_ptr) :: table
  end type
  type, bind(c) :: mp_loop
    integer(c_int64_t) :: size, block_size, n_blocks, n_block_colours
    type(c_ptr) :: block_offset, block_colour_offset, block_order
    type(c_ptr) :: thread_colour, thread_colours, elements
  end type
  type, bind(c) :: mp_ranges
    integer(c_int64_t) :: n_ranges
    type(c_ptr) :: offset, wait_offset, order, waits
  end type

  ! The ranges of a loop, in turns. All threads share it.
  type :: mp_turns
    integer(c_int64_t) :: n_turns = 0
    type(c_ptr), private :: loop = c_null_ptr, ranges = c_null_ptr
    integer(c_int64_t), pointer, private :: offset(:) => null(), wait_offset(:) => null()
    integer(c_int32_t), pointer, private :: order(:) => null(), waits(:) => null()
    integer(c_int32_t), pointer, private :: elements(:) => null() ! some plans list them
    integer, allocatable, private :: done(:) ! 1 for each turn that has ended
    integer(c_int64_t), private :: taken = 0 ! the last turn that a thread has taken
    integer, private :: n_left = 0 ! threads that found no turn left
  end type

  ! What a thread runs: its turn, and the places of it that it has not been given yet.
  type, private :: thread_turn
    integer(c_int64_t) :: turn = 0, next_place = 1, last_place = 0
  end type
  type(thread_turn), save, private :: mine
  !$omp threadprivate(mine)

  interface
    type(c_ptr) function mp_open(path, error) bind(c)
      import :: c_ptr, c_char
      character(kind=c_char) :: path(*), error(*)
    end function
    type(c_ptr) function mp_read_set(plan, name, error) bind(c)
      import :: c_ptr, c_char
      type(c_ptr), value :: plan
      character(kind=c_char) :: name(*), error(*)
    end function
    type(c_ptr) function mp_read_map(plan, name, error) bind(c)
      import :: c_ptr, c_char
      type(c_ptr), value :: plan
      character(kind=c_char) :: name(*), error(*)
    end function
    type(c_ptr) function mp_read_loop(plan, name, variant, error) bind(c)
      import :: c_ptr, c_char
      type(c_ptr), value :: plan, variant
      character(kind=c_char) :: name(*), error(*)
    end function
    type(c_ptr) function mp_read_ranges(plan, loop, error) bind(c)
      import :: c_ptr, c_char
      type(c_ptr), value :: plan
      character(kind=c_char) :: loop(*), error(*)
    end function
    integer(c_int) function mp_read_group(plan, set, tag, name, number, error) bind(c)
      import :: c_ptr, c_char, c_int, c_int64_t
      type(c_ptr), value :: plan
      character(kind=c_char) :: set(*), tag(*), name(*), error(*)
      integer(c_int64_t) :: number
    end function
    type(c_ptr) function mp_read_members(plan, set, tag, group, size, error) bind(c)
      import :: c_ptr, c_char, c_int64_t
      type(c_ptr), value :: plan
      character(kind=c_char) :: set(*), tag(*), error(*)
      integer(c_int64_t), value :: group
      integer(c_int64_t) :: size
    end function
    subroutine mp_free_loop(loop) bind(c)
      import :: c_ptr
      type(c_ptr), value :: loop
    end subroutine
    subroutine mp_free_ranges(ranges) bind(c)
      import :: c_ptr
      type(c_ptr), value :: ranges
    end subroutine
    subroutine mp_close(plan) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan
    end subroutine
    integer(c_int) function mp_yield() bind(c, name="sched_yield") ! of POSIX
      import :: c_int
    end function
  end interface

  private :: take_turn, take_elements, end_loop, wait_for

contains

  ! A map that mp_read_map gave, counted from 1: the points of element e are table(:, e).
  function mp_table(found) result(table)
    type(c_ptr), intent(in) :: found
    integer(c_int32_t), allocatable :: table(:, :)
    type(mp_map), pointer :: map
    integer(c_int32_t), pointer :: from_0(:, :)
    call c_f_pointer(found, map)
    call c_f_pointer(map%table, from_0, [map%arity, map%size])
    table = from_0 + 1
  end function

  ! The turns of a loop; .false. and a reason in `error` where the plan has none.
  logical function mp_read_turns(plan, name, turns, error) result(good)
    type(c_ptr), intent(in) :: plan
    character(kind=c_char), intent(in) :: name(*)
    type(mp_turns), intent(out) :: turns
    character(kind=c_char), intent(inout) :: error(*)
    type(mp_loop), pointer :: loop
    type(mp_ranges), pointer :: ranges
    integer(c_int64_t) :: n_waits

    turns%loop = mp_read_loop(plan, name, c_null_ptr, error)
    good = c_associated(turns%loop)
    if (.not. good) return
    turns%ranges = mp_read_ranges(plan, name, error)
    good = c_associated(turns%ranges)
    if (.not. good) then
      call mp_free_turns(turns)
      return
    end if

    call c_f_pointer(turns%loop, loop)
    call c_f_pointer(turns%ranges, ranges)
    turns%n_turns = ranges%n_ranges
    call c_f_pointer(ranges%offset, turns%offset, [ranges%n_ranges + 1])
    call c_f_pointer(ranges%order, turns%order, [ranges%n_ranges])
    call c_f_pointer(ranges%wait_offset, turns%wait_offset, [ranges%n_ranges + 1])
    n_waits = turns%wait_offset(ranges%n_ranges + 1)
    call c_f_pointer(ranges%waits, turns%waits, [n_waits])
    if (c_associated(loop%elements)) then
      call c_f_pointer(loop%elements, turns%elements, [loop%size])
    end if
    allocate (turns%done(turns%n_turns), source=0)
  end function

  subroutine mp_free_turns(turns)
    type(mp_turns), intent(inout) :: turns
    call mp_free_loop(turns%loop)
    call mp_free_ranges(turns%ranges)
    turns = mp_turns()
  end subroutine

  ! The next elements for this thread, first to last, counted from 1, once all that must come
  ! before them are done; .false. where none are left. Each thread asks until then, as others wait
  ! for what it has taken.
  logical function mp_next_range(turns, first, last) result(found)
    type(mp_turns), intent(inout) :: turns
    integer(c_int64_t), intent(out) :: first, last

    if (mine%next_place > mine%last_place) call take_turn(turns)
    found = mine%turn <= turns%n_turns
    if (found) then
      call take_elements(turns, first, last)
    else
      first = 1
      last = 0
      call end_loop(turns)
    end if
  end function

  ! End the turn of this thread, take the next one, and wait for those that it has to wait for.
  subroutine take_turn(turns)
    type(mp_turns), intent(inout) :: turns
    integer(c_int64_t) :: i, r

    if (mine%turn > 0) then
      !$omp atomic write seq_cst
      turns%done(mine%turn) = 1
    end if
    !$omp atomic capture seq_cst
    turns%taken = turns%taken + 1
    mine%turn = turns%taken
    !$omp end atomic
    if (mine%turn > turns%n_turns) return
    do i = turns%wait_offset(mine%turn) + 1, turns%wait_offset(mine%turn + 1)
      call wait_for(turns%done(turns%waits(i) + 1))
    end do
    r = turns%order(mine%turn) + 1
    mine%next_place = turns%offset(r) + 1
    mine%last_place = turns%offset(r + 1)
  end subroutine

  ! The elements of the places of a turn that stand one behind the other: mostly of all.
  subroutine take_elements(turns, first, last)
    type(mp_turns), intent(in) :: turns
    integer(c_int64_t), intent(out) :: first, last
    integer(c_int64_t) :: place

    first = mine%next_place
    last = mine%last_place
    if (associated(turns%elements)) then
      first = turns%elements(mine%next_place) + 1
      last = first
      do place = mine%next_place + 1, mine%last_place
        if (turns%elements(place) /= last) exit ! it counts from 0
        last = last + 1
      end do
    end if
    mine%next_place = mine%next_place + last - first + 1
  end subroutine

  ! The last thread of the team leaves the turns as they were before the loop.
  subroutine end_loop(turns)
    type(mp_turns), intent(inout) :: turns
    integer :: n_left, n_threads

    mine = thread_turn()
    n_threads = 1
    !$ n_threads = omp_get_num_threads()
    !$omp atomic capture seq_cst
    turns%n_left = turns%n_left + 1
    n_left = turns%n_left
    !$omp end atomic
    if (n_left == n_threads) then
      turns%done = 0
      turns%taken = 0
      turns%n_left = 0
    end if
  end subroutine

  ! Wait until another thread sets this to 1; after a while let the system run others in between.
  subroutine wait_for(done)
    integer, intent(in) :: done
    integer :: ended, n_looks
    integer(c_int) :: ignored
    n_looks = 0
    do
      !$omp atomic read seq_cst
      ended = done
      if (ended == 1) return
      n_looks = n_looks + 1
      if (n_looks > 200) ignored = mp_yield()
    end do
  end subroutine
end module
