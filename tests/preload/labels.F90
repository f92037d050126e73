! A Fortran program that makes a call in two subroutines, with labels.toml: one is under a rule that is off. Built once
! with the module mpi, once with mpi_f08.
!
! Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1.
#ifdef F08
#define MODULE_OF_MPI mpi_f08
#else
#define MODULE_OF_MPI mpi
#endif

subroutine exactly_here(x)
  use MODULE_OF_MPI
  implicit none
  real :: x(:)
  integer :: code
  call MPI_Allreduce(MPI_IN_PLACE, x, size(x), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, code)
  if (code /= MPI_SUCCESS) stop 1
end subroutine

subroutine about_there(x)
  use MODULE_OF_MPI
  implicit none
  real :: x(:)
  integer :: code
  call MPI_Allreduce(MPI_IN_PLACE, x, size(x), MPI_REAL, MPI_SUM, MPI_COMM_WORLD, code)
  if (code /= MPI_SUCCESS) stop 1
end subroutine

program labels
  use MODULE_OF_MPI
  implicit none
  interface
    subroutine exactly_here(x)
      real :: x(:)
    end subroutine
    subroutine about_there(x)
      real :: x(:)
    end subroutine
  end interface
  integer, parameter :: n = 30000
  real :: x(n), operand(n)
  integer :: i, rank, ranks, code, wrong
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  operand = [(sin(real(i) * 1e-3), i = 1, n)]
  wrong = 0
  x = operand
  call exactly_here(x)
  if (maxval(abs(x - ranks * operand)) > ranks * 1e-6) wrong = wrong + 1
  x = operand
  call about_there(x)
  if (maxval(abs(x - ranks * operand)) <= ranks * 1e-6) wrong = wrong + 1
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (rank == 0 .and. wrong == 0) print *, '2 calls, all as they should be'
  if (rank == 0 .and. wrong /= 0) print *, wrong, ' of all ranks'' calls were under the wrong rule'
  call MPI_Finalize(code)
  if (wrong /= 0) stop 1
end program
