"""Program that confines its own process and then executes a command in it. Runs as a script, without Vesper.

    python -I -S confined_exec.py SPEC

`SPEC` is the JSON form of `Confinement`. Landlock limits the files, a system call filter the rest (docs/spec/tools.md).
A step that fails is reported on the descriptor `report`, which the execution of the command closes.
"""

import ctypes
import json
import os
import platform
import resource
import signal
import stat
import struct
import sys

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION = 1

# Rights on files, by the version of Landlock that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | (1 << 14) | (1 << 15)
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Number of rights that each version knows."""
_TCP = 0b11
_SCOPES = 0b11
"""Abstract sockets and signals of processes outside."""


def _numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (word.split("=") for word in text.split())}


_ARCHITECTURES = {
    "x86_64": (
        0xC000003E,
        _numbers("""
    socket=41 socketpair=53 clone=56 ptrace=101 syslog=103 setpgid=109 setsid=112 personality=135
    pivot_root=155 chroot=161 acct=163 mount=165 umount2=166 swapon=167 swapoff=168 reboot=169
    sethostname=170 setdomainname=171 init_module=175 delete_module=176 quotactl=179 ioctl=16
    add_key=248 request_key=249 keyctl=250 unshare=272 perf_event_open=298 name_to_handle_at=303
    open_by_handle_at=304 setns=308 process_vm_readv=310 process_vm_writev=311 finit_module=313
    kexec_load=246 kexec_file_load=320 bpf=321 userfaultfd=323
        """),
    ),
    "aarch64": (
        0xC00000B7,
        _numbers("""
    socket=198 socketpair=199 clone=220 ptrace=117 syslog=116 setpgid=154 setsid=157 personality=92
    pivot_root=41 chroot=51 acct=89 mount=40 umount2=39 swapon=224 swapoff=225 reboot=142
    sethostname=161 setdomainname=162 init_module=105 delete_module=106 quotactl=60 ioctl=29
    add_key=217 request_key=218 keyctl=219 unshare=97 perf_event_open=241 name_to_handle_at=264
    open_by_handle_at=265 setns=268 process_vm_readv=270 process_vm_writev=271 finit_module=273
    kexec_load=104 kexec_file_load=294 bpf=280 userfaultfd=282
        """),
    ),
}
# Both architectures have equal numbers for newer calls.
_NEWER = _numbers("""
    io_uring_setup=425 io_uring_enter=426 io_uring_register=427 open_tree=428 move_mount=429 fsopen=430
    fsconfig=431 fsmount=432 fspick=433 pidfd_open=434 pidfd_getfd=438 process_madvise=440
    mount_setattr=442
""")
_CLONE3 = 435
_CLONE_NEW = 0x7E020080
"""Flags of new namespaces."""
_TIOCSTI = 0x5412
_AF_INET, _AF_INET6 = 2, 10
_EPERM, _ENOSYS = 1, 38
_X32_BIT = 0x40000000

# The machine of the filter: load a word, compare, return.
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENT_0, _ARGUMENT_1 = 0, 4, 16, 24

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def system_call_filter(machine: str, has_network: bool) -> bytes:
    """Return the filter: calls that could leave the confinement fail with EPERM, all others are allowed."""
    architecture, numbers = _ARCHITECTURES[machine]
    flagged = {
        numbers["clone"]: (_ARGUMENT_0, _HAS_BITS, _CLONE_NEW),
        numbers["ioctl"]: (_ARGUMENT_1, _EQUAL, _TIOCSTI),
    }
    sockets = numbers["socket"]
    # A pair of sockets connects two ends of this process only.
    allowed = {*flagged, numbers["socketpair"], *([sockets] if has_network else [])}
    refused = {*numbers.values(), *_NEWER.values()} - allowed
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
        (_EQUAL, 0, 1, _CLONE3),  # its flags are in memory, which a filter cannot read: libraries fall back to clone
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
    ]
    for number in sorted(refused):
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    for number, (offset, compare, value) in sorted(flagged.items()):
        code += [
            (_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, offset),
            (compare, 0, 1, value),
            (_RETURN, 0, 0, _ERRNO | _EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    if has_network:
        code += [
            (_EQUAL, 0, 5, sockets),
            (_LOAD, 0, 0, _ARGUMENT_0),
            (_EQUAL, 2, 0, _AF_INET),
            (_EQUAL, 1, 0, _AF_INET6),
            (_RETURN, 0, 0, _ERRNO | _EPERM),  # sockets of files and of the kernel
            (_RETURN, 0, 0, _ALLOW),
        ]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *each) for each in code)


def _confine_calls(has_network: bool) -> None:
    code = system_call_filter(platform.machine(), has_network)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(program), 0, 0), "seccomp")


def _confine_files(readable: list[str], writable: list[str], has_network: bool) -> None:
    version = _libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if version < 1:
        raise OSError("this kernel has no Landlock, and a command runs in no other way")
    rights = (1 << _RIGHTS_OF_VERSION.get(version, 16)) - 1
    network = _TCP if version >= 4 and not has_network else 0
    rules = struct.pack("=QQQ", rights, network, _SCOPES if version >= 6 else 0)
    rules = rules[: 8 if version < 4 else 16 if version < 6 else 24]
    held = _check(_libc.syscall(_LANDLOCK_CREATE, ctypes.c_char_p(rules), len(rules), 0), "Landlock")
    for paths, wanted in ((readable, _READ), (writable, rights & ~_EXECUTE)):
        for path in paths:
            _allow_path(held, path, wanted & rights)
    _check(_libc.syscall(_LANDLOCK_RESTRICT, held, 0), "Landlock")
    os.close(held)


def _allow_path(held: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(os.fstat(opened).st_mode):
        rights &= _FILE_RIGHTS
    rule = struct.pack("=Qi", rights, opened)
    _check(_libc.syscall(_LANDLOCK_ADD, held, 1, ctypes.c_char_p(rule), 0), f"Landlock: {path}")
    os.close(opened)


def main() -> None:
    spec = json.loads(sys.argv[1])
    report = spec["report"]
    try:
        if report > 2:
            os.set_inheritable(report, False)
        os.chdir(spec["folder"])
        _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        _confine_files(spec["readable"], spec["writable"], spec["network"])
        for name, limit in spec["limits"].items():
            resource.setrlimit(getattr(resource, name), (limit, limit))
        os.closerange(3, report)
        os.closerange(report + 1, 1024)
        _confine_calls(spec["network"])
        os.execve(spec["argv"][0], spec["argv"], spec["environment"])
    except BaseException as error:  # noqa: BLE001  # reported, and the process ends
        os.write(report, f"{type(error).__name__}: {error}".encode()[:1000])
        os._exit(126)


if __name__ == "__main__":
    main()
