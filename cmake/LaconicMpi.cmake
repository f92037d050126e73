# Finds the MPI libraries to build for; each flavour is a binary interface of its own, so each gets its own libraries.
#   LACONIC_MPI_FLAVOURS             list of what was found: openmpi, mpich
#   LACONIC_MPI_BUILDS               the same and abi, the MPI-5 standard interface, which MPICH 5 and Intel MPI have too:
#                                    for what is preloaded
#   LACONIC_MPI_RUNTIMES             the flavours and openmpi5: Open MPI 5, which the libraries for openmpi serve too,
#                                    and which only unmodified programs are tested with
#   laconic::mpi_<flavour>           imported target: headers and libraries
#   LACONIC_MPIEXEC_<flavour>        its launcher
#   LACONIC_MPIF_openmpi             its Fortran compiler, if there is one
#   LACONIC_MPIEXEC_FLAGS_<flavour>  what the launcher needs before -n on a small machine
#   LACONIC_MPI_ENV_<flavour>        NAME=value list for the same purpose
#   LACONIC_MPI_NAME_<flavour>       for messages: "MPICH 5.0.2 (/…/mpicc)"
set(LACONIC_MPI_FLAVOURS "")

# Asks a compiler wrapper what it would do and makes that an imported target.
function(_laconic_mpi_target flavour wrapper)
  execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE shown OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_VARIABLE complaint RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "'${wrapper} -show' failed (${status}): ${complaint}")
  endif()
  separate_arguments(words UNIX_COMMAND "${shown}")
  list(POP_FRONT words)  # the compiler
  set(includes "")
  set(links "")
  set(definitions OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      list(APPEND includes "${CMAKE_MATCH_1}")
    elseif(word MATCHES "^-D(.+)")
      list(APPEND definitions "${CMAKE_MATCH_1}")
    elseif(word MATCHES "^-(L|l|Wl,)")
      list(APPEND links "${word}")
    endif()
  endforeach()
  add_library(laconic::mpi_${flavour} INTERFACE IMPORTED GLOBAL)
  target_include_directories(laconic::mpi_${flavour} SYSTEM INTERFACE ${includes})
  target_link_libraries(laconic::mpi_${flavour} INTERFACE ${links})
  target_compile_definitions(laconic::mpi_${flavour} INTERFACE ${definitions})
endfunction()

# mpi.h's own idea of what it is: the wrapper's name promises nothing.
function(_laconic_mpi_name flavour out)
  get_target_property(includes laconic::mpi_${flavour} INTERFACE_INCLUDE_DIRECTORIES)
  find_file(header mpi.h PATHS ${includes} NO_DEFAULT_PATH NO_CACHE)
  if(NOT header)
    message(FATAL_ERROR "mpi.h of ${flavour} is in none of: ${includes}")
  endif()
  file(STRINGS "${header}" lines REGEX "^#define (MPICH_VERSION|OMPI_(MAJOR|MINOR|RELEASE)_VERSION) ")
  if(lines MATCHES "MPICH_VERSION \"([^\"]+)\"")
    set(${out} "MPICH ${CMAKE_MATCH_1}" PARENT_SCOPE)
    return()
  endif()
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." version)
  set(${out} "Open MPI ${version}" PARENT_SCOPE)
endfunction()

# For a file that is installed: its MPI is the program's, not the one of this machine, which that one's wrapper wanted to be
# found. `laconic` finds it (app/run/loading.h).
function(laconic_forget_mpi_of_build file)
  install(CODE "file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\")")
endfunction()

if(LACONIC_MPI)
  find_program(LACONIC_MPICC_openmpi NAMES mpicc.openmpi DOC "Open MPI's compiler wrapper")
  find_program(LACONIC_MPIEXEC_openmpi NAMES mpiexec.openmpi DOC "Open MPI's launcher")
  find_program(LACONIC_MPIF_openmpi NAMES mpif90.openmpi DOC "Open MPI's Fortran compiler wrapper; optional")
  set(LACONIC_MPIEXEC_FLAGS_openmpi --oversubscribe --bind-to none)
  # Ranks of one machine need no network, and to look for one took half of a short program's time.
  set(LACONIC_MPI_ENV_openmpi LACONIC_CACHE=off OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
      OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_pml=^ucx,cm)

  # PyPI's MPICH 5 in the venv first, Debian's otherwise.
  find_program(LACONIC_MPICC_mpich NAMES mpicc PATHS "${LACONIC_VENV}/bin" NO_DEFAULT_PATH DOC "MPICH's compiler wrapper")
  find_program(LACONIC_MPICC_mpich NAMES mpicc.mpich)
  string(FIND "${LACONIC_MPICC_mpich}" "${LACONIC_VENV}/" at)
  if(at EQUAL 0)
    find_program(LACONIC_MPIEXEC_mpich NAMES mpiexec PATHS "${LACONIC_VENV}/bin" NO_DEFAULT_PATH DOC "MPICH's launcher")
  endif()
  find_program(LACONIC_MPIEXEC_mpich NAMES mpiexec.mpich)
  set(LACONIC_MPIEXEC_FLAGS_mpich -launcher fork)
  # Of UCX's ways no posix, since ranks crash where /dev/shm is full, containers have 64 MB of it, and by sysv they take 1 MB each, not 5;
  # and no cma: to see whether a rank can be reached that reads what the rank has at the address of the very iovec it reads by, and where
  # anything is there, once in thousands of starts, AddressSanitizer takes that for the iovec, and ends the rank.
  set(LACONIC_MPI_ENV_mpich MPIR_CVAR_POLLS_BEFORE_YIELD=1 UCX_TLS=self,sysv LACONIC_CACHE=off)

  # PyPI's Open MPI 5, where tools/setup puts it.
  find_program(LACONIC_MPICC_openmpi5 NAMES mpicc PATHS "${LACONIC_VENV}/openmpi5/bin" NO_DEFAULT_PATH DOC "Open MPI 5's compiler wrapper")
  find_program(LACONIC_MPIEXEC_openmpi5 NAMES mpiexec PATHS "${LACONIC_VENV}/openmpi5/bin" NO_DEFAULT_PATH DOC "Open MPI 5's launcher")
  set(LACONIC_MPIEXEC_FLAGS_openmpi5 ${LACONIC_MPIEXEC_FLAGS_openmpi})
  set(LACONIC_MPI_ENV_openmpi5 ${LACONIC_MPI_ENV_openmpi} OMPI_MCA_btl=^uct,ofi OMPI_MCA_osc=^ucx)

  set(wanted openmpi mpich)
  if(LACONIC_MPI IN_LIST wanted)
    set(wanted ${LACONIC_MPI})
  endif()
  set(LACONIC_MPI_RUNTIMES "")
  foreach(flavour IN LISTS wanted ITEMS openmpi5)
    if(flavour STREQUAL openmpi5 AND NOT openmpi IN_LIST LACONIC_MPI_RUNTIMES)
      continue()
    endif()
    if(LACONIC_MPICC_${flavour} AND LACONIC_MPIEXEC_${flavour})
      _laconic_mpi_target(${flavour} "${LACONIC_MPICC_${flavour}}")
      _laconic_mpi_name(${flavour} name)
      set(LACONIC_MPI_NAME_${flavour} "${name} (${LACONIC_MPICC_${flavour}})")
      list(APPEND LACONIC_MPI_RUNTIMES ${flavour})
      message(STATUS "MPI: ${LACONIC_MPI_NAME_${flavour}}")
    endif()
  endforeach()
  set(LACONIC_MPI_FLAVOURS ${LACONIC_MPI_RUNTIMES})
  list(REMOVE_ITEM LACONIC_MPI_FLAVOURS openmpi5)
  set(LACONIC_MPI_BUILDS ${LACONIC_MPI_FLAVOURS})
  find_program(LACONIC_MPICC_abi NAMES mpicc_abi PATHS "${LACONIC_VENV}/bin" DOC "Compiler wrapper of the standard ABI")
  if(LACONIC_MPICC_abi AND NOT LACONIC_MPI IN_LIST wanted)
    _laconic_mpi_target(abi "${LACONIC_MPICC_abi}")
    list(APPEND LACONIC_MPI_BUILDS abi)
  endif()
  if(NOT LACONIC_MPI_FLAVOURS)
    set(how "install libopenmpi-dev or run tools/setup")
    if(LACONIC_MPI STREQUAL AUTO)
      message(STATUS "MPI: none found, its libraries and tests are left out (${how})")
    else()
      list(JOIN wanted " or " names)
      message(FATAL_ERROR "LACONIC_MPI=${LACONIC_MPI}, but no ${names} was found: ${how}")
    endif()
  endif()
endif()
