"""What the kernels are built for follows the installed driver (here the emulated one), and where they can't run the error says
why and what to build.

test_driver.py BUILD CMAKE EMULATOR-LIBRARIES"""

import os
import subprocess
import sys
import tempfile

BUILD, CMAKE, EMULATOR = (os.path.abspath(path) if os.sep in path else path for path in sys.argv[1:4])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(architectures LANGUAGES C)
list(APPEND CMAKE_MODULE_PATH "%s/cmake")
include(architectures)
ddpcheck_read_driver(driver)
ddpcheck_choose_architectures("${driver}" 13.0 "sm_75;sm_80;sm_86;sm_90;sm_120" chosen problem)
ddpcheck_name_architectures("${chosen}" names)
message(STATUS "driver=${driver} chosen=${chosen} names=${names} problem=${problem}.")
""" % ROOT


def environment(**more):
    names = ("LD_LIBRARY_PATH", "DDPCHECK_EMU_DEVICES", "DDPCHECK_EMU_ARCHITECTURE", "DDPCHECK_EMU_DRIVER_VERSION")
    return {**{key: value for key, value in os.environ.items() if key not in names}, **more}


def emulated(**more):
    return environment(LD_LIBRARY_PATH=EMULATOR, DDPCHECK_EMU_DEVICES="2", **more)


def configured(folder, libraries):
    """What the line of PROJECT says with this driver."""
    done = subprocess.run([CMAKE, "-S", folder, "-B", tempfile.mkdtemp(dir=folder)], env=libraries, capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(line for line in done.stdout.splitlines() if "driver=" in line)


def test_architectures(folder):
    default = "chosen=75-virtual;80-virtual;90-real"
    with open(os.path.join(folder, "CMakeLists.txt"), "w") as file:
        file.write(PROJECT)
    for driver, architecture, expected in (
            ("13000", "8.6", "driver=13000;86;86 " + default + ";86-real names=7.5 (PTX), 8.0 (PTX), 9.0, 8.6 problem=."),
            ("13000", "9.0", "driver=13000;90;90 " + default + " names=7.5 (PTX), 8.0 (PTX), 9.0 problem=."),
            ("13000", "7.0", "makes nothing for a GPU of compute capability 7.0"),
            ("13000", "11.0", "driver=13000;110;110 " + default + " names=7.5 (PTX), 8.0 (PTX), 9.0 problem=."),
            ("12080", "9.0", "the driver takes CUDA up to 12.8, and loads nothing that nvcc 13.0 makes")):
        line = configured(folder, emulated(DDPCHECK_EMU_DRIVER_VERSION=driver, DDPCHECK_EMU_ARCHITECTURE=architecture))
        assert expected in line, "%s is not in: %s" % (expected, line)


def test_errors():
    """The trainer and the kernels' own test: the runtime is newer than the driver; no code for the GPU."""
    trainer = [os.path.join(BUILD, "bin", "ddptrain"), "--ranks", "1", "--iterations", "1"]
    kernels = [os.path.join(BUILD, "tests", "test_kernels_device"), "losses"]
    old = emulated(DDPCHECK_EMU_DRIVER_VERSION="12080")
    other = emulated(DDPCHECK_EMU_ARCHITECTURE="7.0")
    for command, libraries, expected in (
            (trainer, old, ("cudaErrorInsufficientDriver", "the driver takes CUDA up to 12.8", "a toolkit of CUDA 12")),
            (trainer, other, ("cudaErrorNoKernelImageForDevice", "are built with CUDA ", "(PTX)", "this GPU is 7.0 with a driver "
                              "for CUDA 13.0", "-DCMAKE_CUDA_ARCHITECTURES=70")),
            (kernels, other, ("this GPU is 7.0", "-DCMAKE_CUDA_ARCHITECTURES=70"))):
        done = subprocess.run(command, env=libraries, capture_output=True, text=True, timeout=300, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 1, "exit %d: %s" % (done.returncode, said)
        for text in expected:
            assert text in said, "%s is not in: %s" % (text, said)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        test_architectures(place)
    test_errors()
