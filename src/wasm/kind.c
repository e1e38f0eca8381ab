/*
 * What a file is, by its first bytes and the names of its sections. In: bytes of anybody's. Out: whether a runtime shall read the rest. A pure function. WasmEdge executes native code that a module brings in a custom section of the name below ("universal" WebAssembly): such a module is none for ward, and
 * neither is one whose sections cannot be walked through, because what another reader would find there is not known.
 */
#include <string.h>

#include "wasm/wasm.h"

#define HEAD_BYTES 8

static const char native_section[] = "wasmedge";

/* A number of 32 bits, in at most five bytes. */
static bool read_number(const uint8_t *bytes, size_t n, size_t *at, uint32_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 35 && *at < n; shift += 7) {
		uint8_t byte = bytes[(*at)++];

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*ret = (uint32_t)value;
		return value <= UINT32_MAX;
	}
	return false;
}

static enum wasm_kind look_through(const uint8_t *bytes, size_t n)
{
	size_t at = HEAD_BYTES;

	while (at < n) {
		bool custom = bytes[at++] == 0;
		uint32_t size = 0, length = 0;
		size_t end;

		if (!read_number(bytes, n, &at, &size) || size > n - at)
			return WASM_DAMAGED;
		end = at + size;
		if (custom && (!read_number(bytes, end, &at, &length) || length > end - at))
			return WASM_DAMAGED;
		if (custom && length == sizeof(native_section) - 1 && memcmp(bytes + at, native_section, length) == 0)
			return WASM_NATIVE;
		at = end;
	}
	return WASM_MODULE;
}

enum wasm_kind wasm_kind(const uint8_t *bytes, size_t n)
{
	static const uint8_t magic[4] = { 0, 'a', 's', 'm' };

	if (n >= 1 && bytes[0] == '(')
		return WASM_TEXT;
	if (n < HEAD_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return WASM_NONE;
	if (bytes[4] == 1 && !bytes[5] && !bytes[6] && !bytes[7])
		return look_through(bytes, n);
	return bytes[6] == 1 && !bytes[7] ? WASM_COMPONENT : WASM_NEWER;
}
