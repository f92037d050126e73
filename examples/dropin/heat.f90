! Heat in a plate, as many solvers are written: slabs of columns, halos by MPI_Sendrecv, every now and then the whole
! field at rank 0 by MPI_Gather. Nothing here knows of Laconic.
!
!   heat N STEPS EVERY [OUT.f32]       N x N points; a snapshot every so many steps
!
! Rank 0 prints the time spent in snapshots, in seconds, and writes the last one.
program heat
  use mpi
  implicit none
  integer :: n, steps, every, rank, size, code, width, step, shots
  integer :: status(MPI_STATUS_SIZE), left, right, unit, i, j
  real, allocatable :: now(:, :), next(:, :), whole(:, :), slab(:, :)
  double precision :: start, taken, residual, worst
  character(len=1024) :: text

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, size, code)
  n = argument(1)
  steps = argument(2)
  every = argument(3)
  width = n / size
  n = width * size

  allocate (now(n, 0:width + 1), next(n, 0:width + 1), slab(n, width))
  if (rank == 0) allocate (whole(n, n))
  if (rank /= 0) allocate (whole(1, 1))
  do j = 0, width + 1
    do i = 1, n
      now(i, j) = source(i, rank*width + j)
    end do
  end do
  next = now
  left = rank - 1
  right = rank + 1
  if (rank == 0) left = MPI_PROC_NULL
  if (rank == size - 1) right = MPI_PROC_NULL

  taken = 0
  shots = 0
  do step = 1, steps
    call MPI_Sendrecv(now(1, width), n, MPI_REAL, right, 1, now(1, 0), n, MPI_REAL, left, 1, MPI_COMM_WORLD, status, code)
    call MPI_Sendrecv(now(1, 1), n, MPI_REAL, left, 2, now(1, width + 1), n, MPI_REAL, right, 2, MPI_COMM_WORLD, status, code)
    do j = 1, width
      do i = 2, n - 1
        next(i, j) = now(i, j) + 0.2*(now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1) - 4*now(i, j))
      end do
    end do
    residual = maxval(abs(next(:, 1:width) - now(:, 1:width)))
    now(:, 1:width) = next(:, 1:width)
    call MPI_Allreduce(residual, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, code)
    if (mod(step, every) /= 0) cycle
    slab = now(:, 1:width)
    call MPI_Barrier(MPI_COMM_WORLD, code)
    start = MPI_Wtime()
    if (rank == 0) then
      whole(:, 1:width) = slab
      call MPI_Gather(MPI_IN_PLACE, 0, MPI_REAL, whole, n*width, MPI_REAL, 0, MPI_COMM_WORLD, code)
    else
      call MPI_Gather(slab, n*width, MPI_REAL, whole, n*width, MPI_REAL, 0, MPI_COMM_WORLD, code)
    end if
    taken = taken + MPI_Wtime() - start
    shots = shots + 1
  end do

  if (rank == 0) then
    write (*, '(a, f0.6)') 'seconds ', taken/max(shots, 1)
    if (command_argument_count() > 3) then
      call get_command_argument(4, text)
      open (newunit=unit, file=trim(text), access='stream', form='unformatted', status='replace')
      write (unit) whole
      close (unit)
    end if
  end if
  call MPI_Finalize(code)

contains

  integer function argument(k)
    integer, intent(in) :: k
    integer :: bad
    call get_command_argument(k, text)
    read (text, *, iostat=bad) argument
    if (bad /= 0 .or. argument < 1) then
      if (rank == 0) write (*, '(a)') 'heat: want N STEPS EVERY [OUT.f32]'
      call MPI_Abort(MPI_COMM_WORLD, 2, code)
    end if
  end function

  ! A few warm spots on a cold plate.
  real function source(i, j)
    integer, intent(in) :: i, j
    real :: x, y
    x = real(i)/n
    y = real(j)/n
    source = 40*exp(-60*((x - 0.3)**2 + (y - 0.4)**2)) + 25*exp(-200*((x - 0.7)**2 + (y - 0.6)**2)) + 2*sin(20*x)*cos(17*y)
  end function

end program
