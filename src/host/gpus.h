/* The machine's graphics processors, as tables/gpus.def knows them. */
#ifndef WARD_HOST_GPUS_H
#define WARD_HOST_GPUS_H

#include "base/buf.h"
#include "base/err.h"

enum gpu_vendor {
#define VENDOR(id, name, pci) GPU_##id,
#include "gpus.def"
	GPU_VENDORS
};

struct gpu {
	enum gpu_vendor vendor;
	char pci[24]; /* where it is on the bus; "": not known */
	char model[80];
	char node[40]; /* its own device node */
	/* NVIDIA: what the driver says of it in /proc; owned; NULL: nothing */
	char *facts;
};

struct gpus {
	struct gpu *items;
	size_t len;
};

#define GPUS_PROC "/proc/driver/nvidia"

/* Looks for them, in the order of their numbers. The caller clears. */
must_check int gpus_find(struct gpus *ret_gpus, struct ward_err *e);
void gpus_clear(struct gpus *g);

const char *gpu_vendor_name(enum gpu_vendor v);
/* Reads what NVIDIA's driver says of one: the model, and the number of its node. False: it does not
 * say which. A pure function. */
bool gpu_read_facts(const char *text, size_t n, char *model, size_t model_bytes,
		    unsigned *ret_minor);

#endif
