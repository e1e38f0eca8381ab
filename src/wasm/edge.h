/* The C library of WasmEdge, opened at run time. */
#ifndef WARD_WASM_EDGE_H
#define WARD_WASM_EDGE_H

#include "wasm/wasm.h"

struct edge_result {
	uint32_t code;
};

struct edge_string {
	uint32_t length;
	const char *text;
};

struct edge_bytes {
	uint32_t length;
	const uint8_t *bytes;
};

struct edge {
#define EDGE(result, name, arguments) result(*name) arguments;
#include "wasm/edge_api.def"
};

/* Codes of its results. */
enum { EDGE_TERMINATED = 1, EDGE_OUT_OF_COST = 3, EDGE_UNKNOWN_IMPORT = 0x302 };
/* Values of its enumerations. */
enum { EDGE_HOST_WASI = 0, EDGE_OPTIMIZE_2 = 2, EDGE_FORMAT_NATIVE = 0 };

/* Opens the library, which stays open, with its messages off: they would go to standard output.
 * Returns 0, or says why not and gives the exit code. */
int edge_open(const struct wasm_job *job, struct edge *ret);

#endif
