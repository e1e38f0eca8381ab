/* What a file is, by its first bytes. In: bytes of anybody's. Out: whether a runtime shall read the rest. A pure function. */
#include <string.h>

#include "wasm/wasm.h"

enum wasm_kind wasm_kind(const uint8_t *bytes, size_t n)
{
	static const uint8_t magic[4] = { 0, 'a', 's', 'm' };

	if (n >= 1 && bytes[0] == '(')
		return WASM_TEXT;
	if (n < 8 || memcmp(bytes, magic, sizeof(magic)) != 0)
		return WASM_NONE;
	if (bytes[4] == 1 && !bytes[5] && !bytes[6] && !bytes[7])
		return WASM_MODULE;
	return bytes[6] == 1 && !bytes[7] ? WASM_COMPONENT : WASM_NEWER;
}
