# SPDX-License-Identifier: MIT
"""One rank of a job that loads its libraries by name with ctypes, as vLLM's pynccl and CuPy do:
pynccl.py FOLDER [OTHER_NCCL], with RANK and WORLD_SIZE in the environment. Ranks find each other
through FOLDER. Prints the results."""
import ctypes
import os
import sys
import time
from ctypes import byref, c_float, c_int, c_size_t, c_void_p

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
COUNT, STEPS = 1000, 5
FLOAT32, SUM, HOST_TO_DEVICE, DEVICE_TO_HOST = 7, 0, 1, 2


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


def load(name):
    return ctypes.CDLL(name, mode=os.RTLD_LOCAL | os.RTLD_NOW)


cudart, nccl, cublas = load("libcudart.so.12"), load("libnccl.so.2"), load("libcublas.so.12")


def call(function, *arguments):
    result = function(*arguments)
    if result:
        sys.exit(f"{function.__name__}: {result}")


def exchange_unique_id(folder):
    """The unique id that rank 0 made, on all ranks."""
    path, unique = os.path.join(folder, "id"), UniqueId()
    if RANK == 0:
        call(nccl.ncclGetUniqueId, byref(unique))
        with open(path + ".new", "wb") as file:
            file.write(bytes(unique))
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.01)
    with open(path, "rb") as file:
        return UniqueId.from_buffer_copy(file.read())


def main():
    comm, stream, handle, device = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    call(cudart.cudaSetDevice, 0)
    call(cudart.cudaMalloc, byref(device), c_size_t(4 * COUNT))
    call(cudart.cudaStreamCreate, byref(stream))
    call(nccl.ncclCommInitRank, byref(comm), RANKS, exchange_unique_id(sys.argv[1]), RANK)
    call(cublas.cublasCreate_v2, byref(handle))
    call(cublas.cublasSetStream_v2, handle, stream)
    host = (c_float * COUNT)(*([float(RANK + 1)] * COUNT))
    one = c_float(1)
    for _ in range(STEPS):
        call(cudart.cudaMemcpyAsync, device, host, c_size_t(4 * COUNT), HOST_TO_DEVICE, stream)
        call(nccl.ncclAllReduce, device, device, c_size_t(COUNT), FLOAT32, SUM, comm, stream)
        call(nccl.ncclBcast, device, c_size_t(COUNT), FLOAT32, 0, comm, stream)
        call(cudart.cudaMemcpyAsync, host, device, c_size_t(4 * COUNT), DEVICE_TO_HOST, stream)
        call(nccl.ncclGroupStart)
        peer = 1 - RANK
        call(nccl.ncclSend, device, c_size_t(100), FLOAT32, peer, comm, stream)
        call(nccl.ncclRecv, device, c_size_t(100), FLOAT32, peer, comm, stream)
        call(nccl.ncclGroupEnd)
        call(cudart.cudaMemsetAsync, device, 0, c_size_t(4 * COUNT), stream)
        for transposed in (0, 1):
            call(cublas.cublasSgemm_v2, handle, transposed, 0, 10, 20, 30, byref(one), device, 30,
                 device, 30, byref(one), device, 10)
        call(cudart.cudaStreamSynchronize, stream)
    print(f"rank {RANK}: {host[0]} {host[COUNT - 1]}")
    call(nccl.ncclCommDestroy, comm)
    call(cudart.cudaFree, device)
    if len(sys.argv) > 2: # another copy of NCCL
        load(sys.argv[2]).ncclAllReduce  # pylint: disable=expression-not-assigned


main()
