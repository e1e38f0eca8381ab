#!/usr/bin/python3
"""Takes the uncompressed kernel out of a bzImage: extract_vmlinux.py BZIMAGE OUT

QEMU boots an ELF kernel directly (PVH), which spares the guest the unpacking: seconds under
emulation. The boot header says where the payload lies; its magic says how it is packed. Exit 1
where the packing is one we have no tool for.
"""
import gzip
import lzma
import struct
import subprocess
import sys


def lz4(data):
    """The legacy LZ4 frame that the kernel's build uses: blocks of at most 8 MiB, each with its
    packed size in front."""
    out, pos = bytearray(), 4
    while pos + 4 <= len(data):
        size = struct.unpack_from('<I', data, pos)[0]
        pos += 4
        if size == 0 or pos + size > len(data):
            break
        out += lz4_block(data[pos:pos + size])
        pos += size
    return bytes(out)


def length(block, pos, value):
    if value == 15:
        while True:
            value += block[pos]
            pos += 1
            if block[pos - 1] != 255:
                break
    return value, pos


def lz4_block(block):
    out, pos = bytearray(), 0
    while pos < len(block):
        token = block[pos]
        literals, pos = length(block, pos + 1, token >> 4)
        out += block[pos:pos + literals]
        pos += literals
        if pos >= len(block):
            break
        offset = block[pos] | block[pos + 1] << 8
        match, pos = length(block, pos + 2, token & 15)
        match += 4
        while match > 0:
            piece = out[-offset:][:match] if offset >= match else out[-offset:]
            out += piece
            match -= len(piece)
    return bytes(out)


def unpack(payload):
    if payload.startswith(b'\x28\xb5\x2f\xfd'):
        return subprocess.run(['zstd', '-dcq'], input=payload, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout
    if payload.startswith(b'\xfd7zXZ'):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b'\x1f\x8b'):
        return gzip.decompress(payload)
    if payload.startswith(b'\x02\x21\x4c\x18'):
        return lz4(payload)
    return b''


def main():
    image = open(sys.argv[1], 'rb').read()
    setup = (image[0x1f1] or 4) + 1
    offset, size = struct.unpack_from('<II', image, 0x248)
    start = setup * 512 + offset
    kernel = unpack(image[start:start + size])
    if not kernel.startswith(b'\x7fELF'):
        print(f'{sys.argv[1]}: the kernel is packed in a way that is not known here',
              file=sys.stderr)
        return 1
    open(sys.argv[2], 'wb').write(kernel)
    return 0


if __name__ == '__main__':
    sys.exit(main())
