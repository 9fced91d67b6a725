"""Strategy: advise the kernel to forget what was written over the withdrawn function, so that its own code comes back from the file. Surface: private pages of a library.

Class: answer theft. Unprotected: grader exemplary gives full marks. Level: 5.
Must get 0: the withdrawn code lies in memory that belongs to no file.
"""

# The file tests/submissions/hostile/13_predict_backend/exported_function.py of this repository stands here.

import mmap


def restore():
    page = mmap.PAGESIZE
    begin = ctypes.cast(choice, ctypes.c_void_p).value // page * page
    ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(2 * page), mmap.MADV_DONTNEED)


restore()
