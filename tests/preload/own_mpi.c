/* Stands for a program that MPI is linked into statically: it defines MPI's names itself. Not to be run. (The linker
 * may keep MPI_Init as the end of PMPI_Init.) */
#include <stdio.h>

int MPI_Init(int* argc, char*** argv);
int PMPI_Init(int* argc, char*** argv);
int PMPI_Allreduce(const void* from, void* to, int count);

__attribute__((used)) int MPI_Init(int* argc, char*** argv) { return argc == NULL && argv == NULL; }
__attribute__((used)) int PMPI_Init(int* argc, char*** argv) { return MPI_Init(argc, argv); }
__attribute__((used)) int PMPI_Allreduce(const void* from, void* to, int count) { return from == to && count == 0; }

int main(void) {
  puts("this must not run");
  return 0;
}
