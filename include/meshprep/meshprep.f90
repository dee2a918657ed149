! What meshprep_plan.h reads, for Fortran: docs/solvers/fortran.md has a program.
module meshprep
  use, intrinsic :: iso_c_binding
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
    subroutine mp_close(plan) bind(c)
      import :: c_ptr
      type(c_ptr), value :: plan
    end subroutine
  end interface
end module
