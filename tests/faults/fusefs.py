"""A file system in this process whose files fail as they are told to, by the kernel's FUSE protocol.

`linux/fuse.h` documents the messages; their structs are packed here by hand, so that nothing needs
to be installed. Mounting takes root.
"""

import contextlib
import ctypes
import errno
import itertools
import os
import pathlib
import struct
import threading
import time

MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY = 25, 26, 27, 28, 29, 36, 38
BATCH_FORGET = 42
SILENT = {FORGET, BATCH_FORGET, INTERRUPT}
ROOT = 1
DIRECTORY, REGULAR = 0o40755, 0o100644
LONGEST_READ = 1 << 20


class File:
    """A file; `read` may be replaced, and raises OSError to fail."""

    def __init__(self, content, byte_len=None):
        self.content, self.byte_len = content, byte_len
        self.written = time.time_ns() - 10**9
        self.reads = []

    def size(self):
        """What stat says: not always the truth."""
        return len(self.content) if self.byte_len is None else self.byte_len

    def read(self, offset, length):
        return self.content[offset : offset + length]

    def rewrite(self, content):
        self.content, self.written = content, time.time_ns()


class FaultyFs:
    """Files by name in one folder, mounted as long as the block lasts."""

    def __init__(self, mount_point, files):
        self.path = pathlib.Path(mount_point)
        self.files, self.nodes = dict(files), {}
        self.numbers = itertools.count(ROOT + 1)
        self.device = None

    def __enter__(self):
        self.path.mkdir(parents=True, exist_ok=True)
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        flags = MS_NOSUID | MS_NODEV
        if libc.mount(b"faults", os.fsencode(self.path), b"fuse", flags, options.encode()) != 0:
            os.close(self.device)
            raise OSError(ctypes.get_errno(), "mount of FUSE")
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        ctypes.CDLL(None).umount2(os.fsencode(self.path), MNT_DETACH)
        # Whatever still waits for an answer gets an error by this.
        os.close(self.device)

    def number_of(self, file):
        """The inode of a file, given when it is first asked for."""
        for number, known in self.nodes.items():
            if known is file:
                return number
        number = next(self.numbers)
        self.nodes[number] = file
        return number

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                message = os.read(self.device, LONGEST_READ + 4096)
                _, opcode, unique, node = struct.unpack_from("<IIQQ", message)
                if opcode in SILENT:
                    continue
                answer = (unique, opcode, node, message[40:])
                if opcode == READ:
                    # A slow read must not keep others waiting.
                    threading.Thread(target=self.answer, args=answer, daemon=True).start()
                else:
                    self.answer(*answer)

    def answer(self, unique, opcode, node, body):
        try:
            result, code = self.handle(opcode, node, body), 0
        except OSError as error:
            result, code = b"", -error.errno
        reply = struct.pack("<IiQ", 16 + len(result), code, unique) + result
        with contextlib.suppress(OSError):  # An interrupted caller waits for no answer.
            os.write(self.device, reply)

    def handle(self, opcode, node, body):
        if opcode == INIT:
            flags = 1 << 22  # FUSE_MAX_PAGES, or reads are of 128 KiB
            init = struct.pack("<IIIIHHIIHH", 7, 31, 1 << 20, flags, 64, 48, 1 << 20, 1, 256, 0)
            return init.ljust(64, b"\0")
        if opcode == LOOKUP:
            file = self.files.get(os.fsdecode(body.rstrip(b"\0")))
            if file is None:
                raise OSError(errno.ENOENT, "")
            number = self.number_of(file)
            # Nothing may be remembered by the kernel: neither names nor attributes.
            return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self.attributes(number)
        if opcode == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QIi", 0, 0, 0)
        if opcode == READ:
            _, offset, length = struct.unpack_from("<QQI", body)
            file = self.nodes[node]
            file.reads.append((offset, length))
            return file.read(offset, length)
        if opcode == READDIR:
            return self.entries(*struct.unpack_from("<QQI", body)[1:])
        if opcode == STATFS:
            return struct.pack("<QQQQQIIII", 0, 0, 0, 0, 0, 4096, 255, 4096, 0).ljust(80, b"\0")
        if opcode in (FLUSH, RELEASE, RELEASEDIR, DESTROY):
            return b""
        raise OSError(errno.ENOSYS, "")

    def attributes(self, node):
        file = self.nodes.get(node)
        size, mode = (file.size(), REGULAR) if file else (0, DIRECTORY)
        seconds, nanos = divmod(file.written if file else 0, 10**9)
        times = (seconds,) * 3 + (nanos,) * 3
        blocks, names = -(-size // 512), 1 if file else 2
        owner = (os.getuid(), os.getgid())
        return struct.pack("<6Q10I", node, size, blocks, *times, mode, names, *owner, 0, 4096, 0)

    def entries(self, offset, length):
        answer = b""
        for position, (name, file) in enumerate(list(self.files.items()), 1):
            if position <= offset:
                continue
            name = os.fsencode(name)
            entry = struct.pack("<QQII", self.number_of(file), position, len(name), 8) + name
            entry += b"\0" * (-len(entry) % 8)
            if len(answer) + len(entry) > length:
                break
            answer += entry
        return answer
