/*
 * What a file is, by its first bytes and the names of its sections. In: untrusted bytes. Out:
 * whether a runtime shall read the rest. A pure function. WasmEdge executes native code that a
 * module brings in a custom section of the name below ("universal" WebAssembly): such a module is
 * none for ward, and neither is one whose sections cannot be walked through, because what another
 * reader would find there is not known, or that holds more than browsers take. The time that it
 * takes is bounded by the number of functions, whatever the size.
 */
#include <string.h>

#include "wasm/wasm.h"

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

/* The sections that a module has at most once, in this order, and how many things each may hold:
 * what WebAssembly's JavaScript interface lets every browser refuse beyond. Runtimes outside of
 * browsers have no such bounds and fill the memory with a module of nothing but types. */
static const struct {
	uint8_t id;
	bool counted; /* it begins with a number of things */
	uint32_t most;
} sections[] = {
	{ 1, true, 1000000 },  /* types */
	{ 2, true, 1000000 },  /* imports */
	{ 3, true, 1000000 },  /* functions */
	{ 4, true, 100000 },   /* tables */
	{ 5, true, 100 },      /* memories */
	{ 13, true, 1000000 }, /* tags */
	{ 6, true, 1000000 },  /* globals */
	{ 7, true, 1000000 },  /* exports */
	{ 8, false, 0 },       /* start */
	{ 9, true, 10000000 }, /* elements */
	{ 12, false, 0 },      /* number of data segments */
	{ 10, true, 1000000 }, /* code */
	{ 11, true, 100000 },  /* data */
};

#define SECTIONS (sizeof(sections) / sizeof(*sections))
#define CODE_SECTION 10
#define FUNCTION_BYTES_MAX 7654321
#define OTHERS_MAX 10000 /* custom sections, and ones that only a newer runtime knows */

/* The bodies of functions, each with its length in front. */
static enum wasm_kind look_at_code(const uint8_t *bytes, size_t end, size_t at, uint32_t count)
{
	for (uint32_t size = 0; count; count--, at += size) {
		if (!read_number(bytes, end, &at, &size) || size > end - at)
			return WASM_DAMAGED;
		if (size > FUNCTION_BYTES_MAX)
			return WASM_LARGE;
	}
	return WASM_MODULE;
}

/* One that every module may have once; *next: the first row that may still come. */
static enum wasm_kind look_at_section(const uint8_t *bytes, size_t end, size_t at, size_t row,
				      size_t *next)
{
	uint32_t count = 0;

	if (row < *next)
		return WASM_DAMAGED;
	*next = row + 1;
	if (!sections[row].counted)
		return WASM_MODULE;
	if (!read_number(bytes, end, &at, &count))
		return WASM_DAMAGED;
	if (count > sections[row].most)
		return WASM_LARGE;
	return sections[row].id == CODE_SECTION ? look_at_code(bytes, end, at, count) : WASM_MODULE;
}

static enum wasm_kind look_at_custom(const uint8_t *bytes, size_t end, size_t at)
{
	uint32_t length = 0;

	if (!read_number(bytes, end, &at, &length) || length > end - at)
		return WASM_DAMAGED;
	return length == sizeof(native_section) - 1 &&
			       memcmp(bytes + at, native_section, length) == 0
		       ? WASM_NATIVE
		       : WASM_MODULE;
}

static enum wasm_kind look_through(const uint8_t *bytes, size_t n)
{
	enum wasm_kind kind = WASM_MODULE;
	size_t at = WASM_HEAD_BYTES, next = 0, others = 0;

	while (at < n && kind == WASM_MODULE) {
		uint8_t id = bytes[at++];
		uint32_t size = 0;
		size_t row = 0;

		if (!read_number(bytes, n, &at, &size) || size > n - at)
			return WASM_DAMAGED;
		while (row < SECTIONS && sections[row].id != id)
			row++;
		if (row == SECTIONS && ++others > OTHERS_MAX)
			return WASM_LARGE;
		if (row < SECTIONS)
			kind = look_at_section(bytes, at + size, at, row, &next);
		else if (id == 0)
			kind = look_at_custom(bytes, at + size, at);
		at += size;
	}
	return kind;
}

enum wasm_kind wasm_kind_of_head(const uint8_t *bytes, size_t n)
{
	static const uint8_t magic[4] = { 0, 'a', 's', 'm' };

	if (n >= 1 && bytes[0] == '(')
		return WASM_TEXT;
	if (n < WASM_HEAD_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return WASM_NONE;
	if (bytes[4] == 1 && !bytes[5] && !bytes[6] && !bytes[7])
		return WASM_MODULE;
	return bytes[6] == 1 && !bytes[7] ? WASM_COMPONENT : WASM_NEWER;
}

enum wasm_kind wasm_kind(const uint8_t *bytes, size_t n)
{
	enum wasm_kind kind = wasm_kind_of_head(bytes, n);

	return kind == WASM_MODULE ? look_through(bytes, n) : kind;
}
