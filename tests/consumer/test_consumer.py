"""Installs what the build tree holds, then builds and runs programs of somebody else with it.

SLUICE_BUILD is the build tree, SLUICE_CXX its compiler, SLUICE_CXXFLAGS what consumers of a
sanitized library need, and SLUICE_EMBED is set where the library is compiled once more as a part of
another project, which takes a while.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CXX = os.environ["SLUICE_CXX"]
FLAGS = os.environ.get("SLUICE_CXXFLAGS", "")
PRINTS = "allowed\nallowed\nrejected\n1000/month fixed_window\n"
TIMEOUT_SECONDS = 600


def run(*command, **environment):
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    printed = done.stdout.decode("utf-8")
    if done.returncode != 0:
        raise AssertionError(f"{command} exits {done.returncode} and prints:\n{printed}")
    return printed


class Consumers(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="sluice-consumer-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.prefix = cls.folder / "prefix"
        run("cmake", "--install", os.environ["SLUICE_BUILD"], "--prefix", cls.prefix)

    def build_with_cmake(self, project, *options):
        """The program that the project's CMakeLists.txt makes."""
        build = self.folder / project
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        run(
            *("cmake", "-G", "Ninja", "-S", HERE / project, "-B", build),
            *(f"-DCMAKE_CXX_COMPILER={CXX}", f"-DCMAKE_CXX_FLAGS={FLAGS}", *launcher, *options),
        )
        run("cmake", "--build", build, "--target", "consumer")
        return build / "consumer"

    def test_find_package(self):
        program = self.build_with_cmake("find_package", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertEqual(run(program), PRINTS)

    def test_find_engine(self):
        program = self.build_with_cmake("find_engine", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertEqual(run(program), "allowed\nallowed\nrejected\nlimited\nkept\n")

    def test_find_package_refuses_another_minor_version(self):
        project = self.folder / "newer"
        project.mkdir()
        text = (HERE / "find_package" / "CMakeLists.txt").read_text()
        (project / "CMakeLists.txt").write_text(text.replace("sluice 0.1", "sluice 0.2"))
        with self.assertRaisesRegex(AssertionError, "version"):
            run(
                *("cmake", "-G", "Ninja", "-S", project, "-B", project / "build"),
                *(f"-DCMAKE_CXX_COMPILER={CXX}", f"-DCMAKE_PREFIX_PATH={self.prefix}"),
            )

    def test_pkg_config(self):
        (found,) = self.prefix.rglob("sluice.pc")
        program = self.folder / "by_hand"
        run(
            *(HERE / "pkg_config" / "build.sh", HERE / "main.cc", program),
            **{"CXX": CXX, "CXXFLAGS": FLAGS, "PKG_CONFIG_PATH": str(found.parent)},
        )
        libraries = self.prefix / "lib"
        self.assertEqual(run(program, LD_LIBRARY_PATH=str(libraries)), PRINTS)

    def test_the_program_and_only_headers_are_installed(self):
        self.assertIn("replay", run(self.prefix / "bin" / "sluice", "--help"))
        installed = {path.suffix for path in (self.prefix / "include").rglob("*") if path.is_file()}
        self.assertEqual(installed, {".h"})

    def test_the_headers_need_nothing_else_and_warn_of_nothing(self):
        include = self.prefix / "include"
        names = sorted(str(path.relative_to(include)) for path in include.rglob("*.h"))
        source = self.folder / "headers.cc"
        source.write_text("".join(f"#include <{name}>\n" for name in names))
        warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
        unnamed = "-Wno-missing-field-initializers"  # members that are not named are zero
        run(CXX, "-std=c++20", "-fsyntax-only", *warnings, unnamed, "-I", include, source)

    @unittest.skipUnless(os.environ.get("SLUICE_EMBED"), "compiles the library")
    def test_add_subdirectory(self):
        """As a shared library, so that one compilation tests both."""
        options = (f"-DSLUICE_SOURCE_DIR={ROOT}", "-DBUILD_SHARED_LIBS=ON")
        program = self.build_with_cmake("add_subdirectory", *options)
        self.assertEqual(run(program), PRINTS)
        (library,) = program.parent.rglob("libsluice.so")
        names = run("nm", "--dynamic", "--demangle", "--defined-only", library)
        self.assertIn("sluice::Limiter::check", names)
        self.assertNotIn("sluice::store::", re.sub(r"\(.*", "", names))
        self.assertRegex(os.readlink(library), r"\.so\.\d+\.\d+$")
        cache = (program.parent / "CMakeCache.txt").read_text()
        self.assertNotIn("CLI11_DIR", cache, "an embedding project needs only the library")
        self.assertNotIn("GTest_DIR", cache)

    def test_the_engine_is_built_without_net_front_ends_and_server(self):
        """Their targets are not there at all, nor what only they need."""
        build = self.folder / "engine_only"
        run(
            *("cmake", "-G", "Ninja", "-S", HERE / "add_subdirectory", "-B", build),
            *(f"-DCMAKE_CXX_COMPILER={CXX}", f"-DSLUICE_SOURCE_DIR={ROOT}", "-DSLUICE_ENGINE=ON"),
        )
        targets = run("cmake", "--build", build, "--target", "help")
        self.assertIn("libsluice_engine", targets)
        self.assertIn("sluice_embed", targets)
        self.assertNotRegex(targets, r"\bsluice_(net|frontend|app|cli|rules_source)")
        cache = (build / "CMakeCache.txt").read_text()
        self.assertNotIn("CLI11_DIR", cache)


if __name__ == "__main__":
    unittest.main()
