"""k-means with mpi4py, the published application of bit-zip: every rank has a share of the points; in each iteration the
sums of all clusters are added up over ranks. Nothing here knows of Laconic.

    kmeans.py FIELD.f32 VALUES_PER_POINT CLUSTERS ITERATIONS [OUT.f32]

The points are pieces of a field. Rank 0 prints the median time of an iteration's reduction and writes the centres.
"""

import sys

import numpy as np
from mpi4py import MPI


def main(path, length, clusters, iterations, out=None):
    comm = MPI.COMM_WORLD
    length, clusters, iterations = int(length), int(clusters), int(iterations)
    values = np.fromfile(path, dtype=np.float32)
    points = values[: len(values) // length * length].reshape(-1, length)
    mine = points[comm.rank :: comm.size]
    centres = np.ascontiguousarray(points[np.linspace(0, len(points) - 1, clusters).astype(int)])
    comm.Bcast(centres, root=0)
    taken = []
    for _ in range(iterations):
        distances = (mine**2).sum(1)[:, None] - 2 * mine @ centres.T + (centres**2).sum(1)[None, :]
        nearest = distances.argmin(1)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, mine)
        counts = np.bincount(nearest, minlength=clusters).astype(np.int64)
        comm.Barrier()
        start = MPI.Wtime()
        comm.Allreduce(MPI.IN_PLACE, sums, op=MPI.SUM)
        comm.Allreduce(MPI.IN_PLACE, counts, op=MPI.SUM)
        taken.append(comm.allreduce(MPI.Wtime() - start, op=MPI.MAX))
        filled = counts > 0
        centres[filled] = sums[filled] / counts[filled, None].astype(np.float32)
    if comm.rank == 0:
        print(f"seconds {np.median(taken):.6f}")
        if out:
            centres.tofile(out)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
