/*
 * The graphics processors of a plan. In: resources.gpus and what this machine has. Out: the device
 * nodes that appear in the sandbox's /dev, the texts that appear in its /proc/driver/nvidia, and
 * for an image the driver's libraries. Runs in the supervisor; opens no device. The processors that
 * the policy does not name have no node and no text.
 */
#include "plan/plan_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "host/gpus.h"
#include "policy/units.h"

#define TEXT_MAX (64 * 1024)
#define LIBRARIES "/.ward/gpu"

enum need { NEEDED, OPTIONAL };

static const struct {
	enum gpu_vendor vendor;
	const char *node;
	enum need need;
} shared[] = {
#define SHARED(id, node, need) { GPU_##id, node, need },
#include "gpus.def"
};

static const struct driver_file {
	enum gpu_vendor vendor;
	const char *name;
} libraries[] = {
#define LIBRARY(id, name) { GPU_##id, name },
#include "gpus.def"
}, programs[] = {
#define PROGRAM(id, path) { GPU_##id, path },
#include "gpus.def"
};

static const char *const directories[] = {
#define DIRECTORY(path) path,
#include "gpus.def"
};

static const char *keep(struct plan *p, const char *text)
{
	strv_add(&p->strings, text);
	return p->strings.failed ? NULL : p->strings.items[p->strings.len - 1];
}

static int add_node(struct plan *p, const char *node, struct ward_err *e)
{
	return plan_add_device(p, "resources.gpus", node, "render or video", e);
}

static int add_shared(struct plan *p, enum gpu_vendor vendor, struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(shared) && r >= 0; i++) {
		if (shared[i].vendor != vendor)
			continue;
		r = add_node(p, shared[i].node, e);
		if (r <= 0 || shared[i].need == OPTIONAL)
			continue;
		ward_fail(e, ENODEV, "resources.gpus: there is no %s", shared[i].node);
		return ward_remedy(e, "load the driver and create its device nodes: modprobe "
				      "nvidia-uvm, or nvidia-modprobe -u -c 0");
	}
	return r < 0 ? r : 0;
}

static int add_text(struct plan *p, const char *path, const char *text, struct ward_err *e)
{
	struct plan_gpus *g = p->gpus;
	struct plan_text *new = &g->texts[g->text_count];

	if (g->text_count == PLAN_DEVICES_MAX)
		return 0;
	*new = (struct plan_text){ keep(p, path), keep(p, text) };
	if (!new->path || !new->text)
		return ward_fail(e, ENOMEM, "out of memory");
	g->text_count++;
	return 0;
}

/* The driver's own parameters. They ask programs not to make device nodes, which would fail. */
static int add_driver_texts(struct plan *p, struct ward_err *e)
{
	static const char *const names[] = { "params", "version" };
	static const char makes[] = "\nModifyDeviceFiles: 1\n";
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++) {
		char path[64];
		auto_buf text = { 0 };
		char *at;

		snprintf(path, sizeof(path), GPUS_PROC "/%s", names[i]);
		if (io_read_file(AT_FDCWD, path, TEXT_MAX, &text) < 0)
			continue;
		at = strstr(buf_text(&text), makes);
		if (at)
			at[sizeof(makes) - 3] = '0';
		r = add_text(p, path, buf_text(&text), e);
	}
	return r;
}

static int add_gpu(struct plan *p, const struct gpu *gpu, struct ward_err *e)
{
	char path[96];
	int r = add_node(p, gpu->node, e);

	if (r > 0) {
		ward_fail(e, ENODEV, "resources.gpus: GPU %s has no device node %s", gpu->pci,
			  gpu->node);
		return ward_remedy(e, "create it: nvidia-modprobe -c %s, or udevadm trigger",
				   gpu->node + strcspn(gpu->node, "0123456789"));
	}
	if (r == 0)
		r = add_shared(p, gpu->vendor, e);
	if (r < 0 || !gpu->facts)
		return r;
	snprintf(path, sizeof(path), GPUS_PROC "/gpus/%s/information", gpu->pci);
	return add_text(p, path, gpu->facts, e);
}

static bool is_driver_library(enum gpu_vendor vendor, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		if (libraries[i].vendor == vendor &&
		    strncmp(name, libraries[i].name, strlen(libraries[i].name)) == 0)
			return true;
	return false;
}

/* A file as it is, a link as a link to its neighbour. */
static int add_library(struct plan *p, const char *dir, const char *name)
{
	char source[512], target[512], to[256];
	struct plan_mount *m;
	struct stat st;
	ssize_t n;

	snprintf(source, sizeof(source), "%s/%s", dir, name);
	snprintf(target, sizeof(target), LIBRARIES "/%s", name);
	if (lstat(source, &st) < 0)
		return 0;
	n = S_ISLNK(st.st_mode) ? readlink(source, to, sizeof(to) - 1) : -1;
	if (n > 0) {
		to[n] = '\0';
		return strchr(to, '/') ? 0 : plan_add_link(p, to, target);
	}
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return 0;
	m = plan_add_bind(p, source, target);
	if (m)
		m->is_file = true;
	return m ? 0 : -ENOMEM;
}

static int add_libraries(struct plan *p, enum gpu_vendor vendor, const char *dir,
			 struct ward_err *e)
{
	DIR *entries = opendir(dir);
	struct dirent *entry;
	int r = 0;

	while (entries && r == 0 && (entry = readdir(entries)))
		if (strlen(entry->d_name) < 128 && is_driver_library(vendor, entry->d_name))
			r = add_library(p, dir, entry->d_name);
	if (entries)
		closedir(entries);
	return r < 0 ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* An image has the vendor's programs, if any, but never the driver of this kernel. */
static int add_driver(struct plan *p, enum gpu_vendor vendor, struct ward_err *e)
{
	char path[256];
	size_t first = 0;

	while (first < ARRAY_LEN(libraries) && libraries[first].vendor != vendor)
		first++;
	if (first == ARRAY_LEN(libraries))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (programs[i].vendor == vendor && access(programs[i].name, X_OK) == 0) {
			struct plan_mount *m =
				plan_add_bind(p, programs[i].name, LIBRARIES "/bin/nvidia-smi");

			if (!m)
				return ward_fail(e, ENOMEM, "out of memory");
			m->is_file = true;
			break;
		}
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		snprintf(path, sizeof(path), "%s/%s.1", directories[i], libraries[first].name);
		if (access(path, R_OK) != 0)
			continue;
		p->gpus->driver_bound = true;
		return add_libraries(p, vendor, directories[i], e);
	}
	strv_addf(&p->notes, "the driver's %s.1 was not found: the image must contain it",
		  libraries[first].name);
	return 0;
}

static bool is_wanted(const struct strv *wanted, size_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", number);
	return strv_has(wanted, "all") || strv_has(wanted, text);
}

/* Every number must be one that exists. */
static int check_numbers(const struct strv *wanted, const struct gpus *found, struct ward_err *e)
{
	uint64_t number;

	if (found->len == 0) {
		ward_fail(e, ENODEV, "resources.gpus: this machine has no GPU that ward knows");
		return ward_remedy(
			e, "install its driver (`ward doctor` lists GPUs), or set gpus: none");
	}
	for (size_t i = 0; i < wanted->len; i++)
		if (units_parse_uint(wanted->items[i], &number) == 0 && number >= found->len) {
			ward_fail(e, ENODEV,
				  "resources.gpus: there is no GPU %s: the last one is %zu",
				  wanted->items[i], found->len - 1);
			return ward_remedy(e, "`ward doctor` lists them");
		}
	return 0;
}

static int add_wanted(struct plan *p, const struct gpus *found, struct ward_err *e)
{
	const struct strv *wanted = &p->spec->policy.res_gpus;
	bool vendors[GPU_VENDORS] = { false };
	int r = check_numbers(wanted, found, e);

	for (size_t i = 0; i < found->len && r == 0; i++) {
		const struct gpu *gpu = &found->items[i];

		if (!is_wanted(wanted, i))
			continue;
		vendors[gpu->vendor] = true;
		r = add_gpu(p, gpu, e);
		strv_addf(&p->gpus->names, "%zu: %s %s%s%s", i,
			  gpu->model[0] ? gpu->model : gpu_vendor_name(gpu->vendor), gpu->node,
			  gpu->pci[0] ? " at " : "", gpu->pci);
	}
	if (r == 0 && vendors[GPU_NVIDIA])
		r = add_driver_texts(p, e);
	for (unsigned v = 0; v < GPU_VENDORS && r == 0 && p->image.root; v++)
		if (vendors[v])
			r = add_driver(p, (enum gpu_vendor)v, e);
	return r == 0 && p->gpus->names.failed ? ward_fail(e, ENOMEM, "out of memory") : r;
}

int plan_add_gpus(struct plan *p, struct ward_err *e)
{
	struct gpus found = { 0 };
	int r;

	if (!p->spec->policy.res_gpus.len)
		return 0;
	p->gpus = calloc(1, sizeof(*p->gpus));
	if (!p->gpus)
		return ward_fail(e, ENOMEM, "out of memory");
	r = gpus_find(&found, e);
	if (r == 0)
		r = add_wanted(p, &found, e);
	gpus_clear(&found);
	return r;
}

void plan_gpus_env(struct plan *p)
{
	if (p->gpus && p->gpus->driver_bound)
		plan_set_env(p, "LD_LIBRARY_PATH", strlen("LD_LIBRARY_PATH"), LIBRARIES);
}

void plan_gpus_free(struct plan_gpus *g)
{
	if (!g)
		return;
	strv_free(&g->names);
	free(g);
}
