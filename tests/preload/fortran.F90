! Every collective from Fortran, in every form, by `use mpi` or, where F08 is defined, by `use mpi_f08`. INIT(name) is the
! persistent form's name.
!
!   fortran TOLERANCE       largest error allowed a rank; and no result may be without one: then nobody served the call
!
! Rank 0 prints "N calls, all as they should be"; or what was wrong is printed, with exit status 1.
#ifdef F08
#define MODULE mpi_f08
#define REQUEST type(MPI_Request)
#define COMMUNICATOR type(MPI_Comm)
#else
#define MODULE mpi
#define REQUEST integer
#define COMMUNICATOR integer
#endif
#ifdef EXTENSION
#define INIT(name) MPIX_/**/name/**/_init
#else
#define INIT(name) MPI_/**/name/**/_init
#endif
program fortran
  use MODULE
#if defined(EXTENSION) && defined(F08)
  use mpi_f08_ext
#endif
  implicit none
  integer, parameter :: n = 5003, blocking = 1, nonblocking = 2, persistent = 3, kinds = 14
  integer :: form, kind, rank, size, code, calls, wrong, provided, i
  integer, allocatable :: counts(:), places(:)
  real, allocatable, asynchronous :: x(:), y(:)
  real :: tolerance
  character(len=32) :: text
  COMMUNICATOR :: world, comm

  call get_command_argument(1, text)
  read (text, *) tolerance
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, code)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, 0, world, code)
  call MPI_Comm_dup(world, comm, code)
  call MPI_Comm_rank(comm, rank, code)
  call MPI_Comm_size(comm, size, code)
  allocate (x(n*size), y(n*size), counts(size), places(size))
  counts = n
  places = [(n*i, i=0, size - 1)]
  calls = 0
  wrong = 0
  do form = blocking, persistent
    do kind = 1, merge(kinds - 1, kinds, form == persistent)  ! without an interface an argument has one type
      call perform()
      calls = calls + 1
    end do
  end do
  call MPI_Comm_free(comm, code)
  call MPI_Comm_free(world, code)
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (rank == 0 .and. wrong == 0) write (*, '(i0, a)') calls, ' calls, all as they should be'
  call MPI_Finalize(code)
  if (wrong /= 0) stop 1

contains

  ! Smooth, and sums over ranks have no rounding of their own.
  real function value(r, i)
    integer, intent(in) :: r, i
    value = r + int(60000*sin(1e-3*i))/65536.0
  end function

  ! The sum over all ranks.
  real function total(i)
    integer, intent(in) :: i
    total = size*value(0, i) + size*(size - 1)/2.0
  end function

  ! Rank r's block of y begins at place 0, 1, ... and has what `from` (a rank, or -1: the sum) has from i on.
  subroutine expect(place, from, first, scale)
    integer, intent(in) :: place, from, first, scale
    real :: wanted, error, worst
    integer :: j
    worst = 0
    do j = 1, n
      if (from < 0) wanted = total(first + j)
      if (from >= 0) wanted = value(from, first + j)
      error = abs(y(place*n + j) - wanted)
      if (.not. error <= worst) worst = error
    end do
    if (worst <= tolerance*scale .and. worst > 0) return
    wrong = wrong + 1
    write (*, '(a, i0, a, i0, a, i0, a, es10.3)') 'rank ', rank, ': collective ', kind, ', form ', form, ': error ', worst
  end subroutine

  subroutine check()
    integer :: r
    select case (kind)
    case (1, 14)
      call expect(0, -1, 0, size)
    case (2)
      if (rank == 0) call expect(0, -1, 0, size)
    case (3, 4)
      call expect(0, -1, n*rank, size)
    case (5)
      y = x
      if (rank /= 0) call expect(0, 0, 0, 1)
    case (6, 7)
      if (rank /= 0) call expect(0, 0, n*rank, 1)
    case default
      do r = 0, size - 1
        if (kind < 10 .and. rank /= 0) return
        if (r /= rank) call expect(r, r, merge(n*rank, 0, kind >= 12), 1)
      end do
    end select
  end subroutine

  subroutine perform()
    REQUEST :: request, all(1)
    integer :: again
    request = MPI_REQUEST_NULL
    if (form == persistent) call begin_persistent(request)
    do again = 1, merge(2, 1, form == persistent)
      x = [(value(rank, i), i=1, n*size)]
      y = merge(x, -1.0, kind == 14)
      if (form == blocking) call call_blocking()
      if (form == nonblocking) call begin(request)
      if (form == persistent .and. again == 1) call MPI_Start(request, code)
      if (form == persistent .and. again == 2) then
        all(1) = request
        call MPI_Startall(1, all, code)
        call MPI_Startall(0, all, code)  ! of none
        request = all(1)
      end if
      call MPI_Wait(request, MPI_STATUS_IGNORE, code)
      if (size > 1) call check()
    end do
    if (form == persistent) call MPI_Request_free(request, code)
  end subroutine

  subroutine call_blocking()
    select case (kind)
    case (1); call MPI_Allreduce(x, y, n, MPI_REAL, MPI_SUM, comm, code)
    case (2); call MPI_Reduce(x, y, n, MPI_REAL, MPI_SUM, 0, comm, code)
    case (3); call MPI_Reduce_scatter(x, y, counts, MPI_REAL, MPI_SUM, comm, code)
    case (4); call MPI_Reduce_scatter_block(x, y, n, MPI_REAL, MPI_SUM, comm, code)
    case (5); call MPI_Bcast(x, n, MPI_REAL, 0, comm, code)
    case (6); call MPI_Scatter(x, n, MPI_REAL, y, n, MPI_REAL, 0, comm, code)
    case (7); call MPI_Scatterv(x, counts, places, MPI_REAL, y, n, MPI_REAL, 0, comm, code)
    case (8); call MPI_Gather(x, n, MPI_REAL, y, n, MPI_REAL, 0, comm, code)
    case (9); call MPI_Gatherv(x, n, MPI_REAL, y, counts, places, MPI_REAL, 0, comm, code)
    case (10); call MPI_Allgather(x, n, MPI_REAL, y, n, MPI_REAL, comm, code)
    case (11); call MPI_Allgatherv(x, n, MPI_REAL, y, counts, places, MPI_REAL, comm, code)
    case (12); call MPI_Alltoall(x, n, MPI_REAL, y, n, MPI_REAL, comm, code)
    case (13); call MPI_Alltoallv(x, counts, places, MPI_REAL, y, counts, places, MPI_REAL, comm, code)
    case (14); call MPI_Allreduce(MPI_IN_PLACE, y, n, MPI_REAL, MPI_SUM, comm, code)
    end select
  end subroutine

  subroutine begin(r)
    REQUEST, intent(out) :: r
    select case (kind)
    case (1); call MPI_Iallreduce(x, y, n, MPI_REAL, MPI_SUM, comm, r, code)
    case (2); call MPI_Ireduce(x, y, n, MPI_REAL, MPI_SUM, 0, comm, r, code)
    case (3); call MPI_Ireduce_scatter(x, y, counts, MPI_REAL, MPI_SUM, comm, r, code)
    case (4); call MPI_Ireduce_scatter_block(x, y, n, MPI_REAL, MPI_SUM, comm, r, code)
    case (5); call MPI_Ibcast(x, n, MPI_REAL, 0, comm, r, code)
    case (6); call MPI_Iscatter(x, n, MPI_REAL, y, n, MPI_REAL, 0, comm, r, code)
    case (7); call MPI_Iscatterv(x, counts, places, MPI_REAL, y, n, MPI_REAL, 0, comm, r, code)
    case (8); call MPI_Igather(x, n, MPI_REAL, y, n, MPI_REAL, 0, comm, r, code)
    case (9); call MPI_Igatherv(x, n, MPI_REAL, y, counts, places, MPI_REAL, 0, comm, r, code)
    case (10); call MPI_Iallgather(x, n, MPI_REAL, y, n, MPI_REAL, comm, r, code)
    case (11); call MPI_Iallgatherv(x, n, MPI_REAL, y, counts, places, MPI_REAL, comm, r, code)
    case (12); call MPI_Ialltoall(x, n, MPI_REAL, y, n, MPI_REAL, comm, r, code)
    case (13); call MPI_Ialltoallv(x, counts, places, MPI_REAL, y, counts, places, MPI_REAL, comm, r, code)
    case (14); call MPI_Iallreduce(MPI_IN_PLACE, y, n, MPI_REAL, MPI_SUM, comm, r, code)
    end select
  end subroutine

  subroutine begin_persistent(r)
    REQUEST, intent(out) :: r
    select case (kind)
    case (1); call INIT(Allreduce)(x, y, n, MPI_REAL, MPI_SUM, comm, MPI_INFO_NULL, r, code)
    case (2); call INIT(Reduce)(x, y, n, MPI_REAL, MPI_SUM, 0, comm, MPI_INFO_NULL, r, code)
    case (3); call INIT(Reduce_scatter)(x, y, counts, MPI_REAL, MPI_SUM, comm, MPI_INFO_NULL, r, code)
    case (4); call INIT(Reduce_scatter_block)(x, y, n, MPI_REAL, MPI_SUM, comm, MPI_INFO_NULL, r, code)
    case (5); call INIT(Bcast)(x, n, MPI_REAL, 0, comm, MPI_INFO_NULL, r, code)
    case (6); call INIT(Scatter)(x, n, MPI_REAL, y, n, MPI_REAL, 0, comm, MPI_INFO_NULL, r, code)
    case (7); call INIT(Scatterv)(x, counts, places, MPI_REAL, y, n, MPI_REAL, 0, comm, MPI_INFO_NULL, r, code)
    case (8); call INIT(Gather)(x, n, MPI_REAL, y, n, MPI_REAL, 0, comm, MPI_INFO_NULL, r, code)
    case (9); call INIT(Gatherv)(x, n, MPI_REAL, y, counts, places, MPI_REAL, 0, comm, MPI_INFO_NULL, r, code)
    case (10); call INIT(Allgather)(x, n, MPI_REAL, y, n, MPI_REAL, comm, MPI_INFO_NULL, r, code)
    case (11); call INIT(Allgatherv)(x, n, MPI_REAL, y, counts, places, MPI_REAL, comm, MPI_INFO_NULL, r, code)
    case (12); call INIT(Alltoall)(x, n, MPI_REAL, y, n, MPI_REAL, comm, MPI_INFO_NULL, r, code)
    case (13); call INIT(Alltoallv)(x, counts, places, MPI_REAL, y, counts, places, MPI_REAL, comm, MPI_INFO_NULL, r, code)
    end select
  end subroutine

end program
