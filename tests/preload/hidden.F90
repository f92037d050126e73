! What hidden.c opens: with it comes MPI's Fortran, which nobody else sees.
subroutine hidden(comm) bind(C)
  use, intrinsic :: iso_c_binding
  use mpi
  implicit none
  integer(c_int) :: comm
  integer :: request, code
  call MPI_Comm_idup(MPI_COMM_WORLD, comm, request, code)
  call MPI_Wait(request, MPI_STATUS_IGNORE, code)
end subroutine
