# http_parser::http_parser. Debian's package says neither to CMake nor to pkg-config where it is.
find_path(HTTP_PARSER_INCLUDE_DIR http_parser.h)
find_library(HTTP_PARSER_LIBRARY http_parser)
mark_as_advanced(HTTP_PARSER_INCLUDE_DIR HTTP_PARSER_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HttpParser REQUIRED_VARS HTTP_PARSER_LIBRARY
                                                           HTTP_PARSER_INCLUDE_DIR)

if(HttpParser_FOUND AND NOT TARGET http_parser::http_parser)
  add_library(http_parser::http_parser UNKNOWN IMPORTED)
  set_target_properties(
    http_parser::http_parser PROPERTIES IMPORTED_LOCATION "${HTTP_PARSER_LIBRARY}"
                                        INTERFACE_INCLUDE_DIRECTORIES "${HTTP_PARSER_INCLUDE_DIR}")
endif()
