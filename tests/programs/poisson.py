"""Poisson's equation in three dimensions by PETSc's solvers, those among them whose sums travel in the background."""

import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

N = 40
NEIGHBOURS = [(0, 0, 0), (-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]

grid = PETSc.DMDA().create([N, N, N], stencil_width=1)
matrix = grid.createMatrix()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
(x0, x1), (y0, y1), (z0, z1) = grid.getRanges()
for z in range(z0, z1):
    for y in range(y0, y1):
        for x in range(x0, x1):
            row.index, row.field = (x, y, z), 0
            for dx, dy, dz in NEIGHBOURS:
                place = (x + dx, y + dy, z + dz)
                if all(0 <= i < N for i in place):
                    column.index, column.field = place, 0
                    matrix.setValueStencil(row, column, 6.0 if (dx, dy, dz) == (0, 0, 0) else -1.0)
matrix.assemble()

right = grid.createGlobalVec()
right.set(1.0)
solution = right.duplicate()
for method, preconditioner in (("cg", "bjacobi"), ("gmres", "asm"), ("pipecg", "jacobi"), ("pipefgmres", "jacobi")):
    solver = PETSc.KSP().create()
    solver.setOperators(matrix)
    solver.setType(method)
    solver.getPC().setType(preconditioner)
    solver.setTolerances(rtol=1e-10)
    solution.set(0)
    solver.solve(right, solution)
    PETSc.Sys.Print(f"result {method} {solver.getIterationNumber()} {solution.norm():.14e}")

scatter, whole = PETSc.Scatter.toZero(solution)
scatter.scatter(solution, whole, False, PETSc.Scatter.Mode.FORWARD)
PETSc.Sys.Print(f"result sum {whole.array.sum():.14e}")
