"""The OpenCL API by ctypes, as a library beneath SYCL calls it. Runs in child processes.

Each call returns OpenCL's error code, or raises where a test does not expect one.
"""

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_ulong, c_void_p
from pathlib import Path

import dpctl

GPU, CPU = 4, 2
DEVICE_UUID, DEVICE_SVM, HOST_UNIFIED = 0x106A, 0x1053, 0x1035
PROGRAM_BINARY_SIZES, PROGRAM_BINARIES = 0x1165, 0x1166
PROFILING, PROFILING_START, PROFILING_END = 2, 0x1282, 0x1283

_lib = Path(dpctl.__file__).parents[3]
for _name in ("libintlc.so.5", "libimf.so", "libsvml.so", "libirng.so"):
    ctypes.CDLL(str(_lib / _name), mode=ctypes.RTLD_GLOBAL)
cl = ctypes.CDLL(str(_lib / "libOpenCL.so.1"), mode=ctypes.RTLD_GLOBAL)


def made(name: str, *arguments: object) -> int:
    """The object that clCreate... returns."""
    code = c_int()
    function = getattr(cl, name)
    function.restype = c_void_p
    result = function(*arguments, byref(code))
    if code.value != 0:
        raise RuntimeError(f"{name}: {code.value}")
    return c_void_p(result)


def ok(code: int) -> None:
    if code != 0:
        raise RuntimeError(f"OpenCL error {code}")


def devices(kind: int) -> list[c_void_p]:
    count = c_uint()
    ok(cl.clGetPlatformIDs(0, None, byref(count)))
    platforms = (c_void_p * count.value)()
    ok(cl.clGetPlatformIDs(count.value, platforms, None))
    found = []
    for platform in platforms:
        device = c_void_p()
        if (
            cl.clGetDeviceIDs(c_void_p(platform), c_ulong(kind), 1, byref(device), None)
            == 0
        ):
            found.append(device)
    return found


def info(device: c_void_p, param: int, size: int) -> bytes:
    out = ctypes.create_string_buffer(size)
    ok(cl.clGetDeviceInfo(device, param, c_size_t(size), out, None))
    return out.raw


def context(*of: c_void_p) -> c_void_p:
    handles = (c_void_p * len(of))(*[device.value for device in of])
    return made("clCreateContext", None, len(of), handles, None, None)


def built(program: c_void_p, options: str = "") -> c_void_p:
    ok(cl.clBuildProgram(program, 0, None, options.encode(), None, None))
    return program


def from_source(where: c_void_p, source: str, options: str = "") -> c_void_p:
    text = c_char_p(source.encode())
    made_program = made("clCreateProgramWithSource", where, 1, byref(text), None)
    return built(made_program, options)


def binary(program: c_void_p) -> bytes:
    size = c_size_t()
    ok(
        cl.clGetProgramInfo(
            program, PROGRAM_BINARY_SIZES, c_size_t(8), byref(size), None
        )
    )
    out = ctypes.create_string_buffer(size.value)
    ok(
        cl.clGetProgramInfo(
            program,
            PROGRAM_BINARIES,
            c_size_t(8),
            byref(c_void_p(ctypes.addressof(out))),
            None,
        )
    )
    return out.raw


def from_binary(where: c_void_p, device: c_void_p, image: bytes) -> c_void_p:
    return built(
        made(
            "clCreateProgramWithBinary",
            where,
            1,
            byref(device),
            byref(c_size_t(len(image))),
            byref(c_char_p(image)),
            None,
        )
    )


def extension(name: str, result: type, device: c_void_p):
    """A function that only a platform's extension table knows."""
    platform = c_void_p()
    ok(cl.clGetDeviceInfo(device, 0x1031, c_size_t(8), byref(platform), None))
    cl.clGetExtensionFunctionAddressForPlatform.restype = c_void_p
    address = cl.clGetExtensionFunctionAddressForPlatform(platform, name.encode())
    return ctypes.CFUNCTYPE(result)(address)
