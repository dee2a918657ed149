# find_package(meshprep): the target meshprep::meshprep, for C and C++. The folder needs no installation:
# cmake -Dmeshprep_DIR=.../include/meshprep
include(CMakeFindDependencyMacro)
find_dependency(HDF5 COMPONENTS C)
find_dependency(Threads)
if(NOT TARGET meshprep::meshprep)
  add_library(meshprep::meshprep INTERFACE IMPORTED)
  set_target_properties(meshprep::meshprep PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR};${HDF5_C_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES "${HDF5_C_LIBRARIES};Threads::Threads")
endif()
