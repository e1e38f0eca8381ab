/*
 * Which graphics processors this machine has. In: the nodes of /dev, what NVIDIA's driver says in
 * /proc, the render nodes of /sys. Out: a list in the order of their numbers. Runs in the
 * supervisor and in `ward doctor` with the user's rights; opens no device. The kernel's texts are
 * believed, their shape is not.
 */
#include "host/gpus.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "policy/units.h"

#define FACTS_MAX 8192
#define GPUS_MAX 64

static const struct {
	const char *name;
	unsigned pci;
} vendors[] = {
#define VENDOR(id, name, pci) [GPU_##id] = { name, pci },
#include "gpus.def"
};

const char *gpu_vendor_name(enum gpu_vendor v)
{
	return vendors[v].name;
}

/* The value of "NAME:   VALUE" in these lines; *ret_n its length. */
static const char *find_value(const char *text, size_t n, const char *name, size_t *ret_n)
{
	const char *end = text + n;
	size_t name_n = strlen(name);

	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		const char *at = text + name_n;

		if (!line_end)
			line_end = end;
		if ((size_t)(line_end - text) > name_n && memcmp(text, name, name_n) == 0 &&
		    *at == ':') {
			for (at++; at < line_end && (*at == ' ' || *at == '\t'); at++)
				;
			while (line_end > at && (line_end[-1] == ' ' || line_end[-1] == '\t'))
				line_end--;
			*ret_n = (size_t)(line_end - at);
			return at;
		}
		text = line_end + 1;
	}
	return NULL;
}

static bool read_small(const char *text, size_t n, unsigned *ret_value)
{
	unsigned value = 0;

	if (n == 0 || n > 4)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = 10 * value + (unsigned)(text[i] - '0');
	}
	*ret_value = value;
	return true;
}

bool gpu_read_facts(const char *text, size_t n, char *model, size_t model_bytes,
		    unsigned *ret_minor)
{
	size_t value_n = 0;
	const char *value = find_value(text, n, "Model", &value_n);

	if (value_n >= model_bytes)
		value_n = model_bytes - 1;
	memcpy(model, value ? value : "", value ? value_n : 0);
	model[value ? value_n : 0] = '\0';
	value = find_value(text, n, "Device Minor", &value_n);
	return value && read_small(value, value_n, ret_minor);
}

static struct gpu *add_gpu(struct gpus *g, enum gpu_vendor vendor)
{
	struct gpu *items =
		g->len < GPUS_MAX ? reallocarray(g->items, g->len + 1, sizeof(*items)) : NULL;

	if (!items)
		return NULL;
	g->items = items;
	items[g->len] = (struct gpu){ .vendor = vendor };
	return &items[g->len++];
}

static bool is_device(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISCHR(st.st_mode);
}

/* Calls each entry of a directory that begins with prefix; a directory that does not exist has
 * none. */
static int each_entry(const char *path, const char *prefix,
		      int (*one)(struct gpus *, const char *name), struct gpus *g)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return 0;
	while (r == 0 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    strlen(entry->d_name) < sizeof(((struct gpu *)0)->pci))
			r = one(g, entry->d_name);
	closedir(dir);
	return r;
}

static int add_nvidia(struct gpus *g, const char *pci)
{
	char path[128];
	auto_buf facts = { 0 };
	struct gpu *new;
	unsigned minor;

	snprintf(path, sizeof(path), GPUS_PROC "/gpus/%s/information", pci);
	new = add_gpu(g, GPU_NVIDIA);
	if (!new)
		return -ENOMEM;
	if (io_read_file(AT_FDCWD, path, FACTS_MAX, &facts) < 0 ||
	    !gpu_read_facts(buf_text(&facts), facts.len, new->model, sizeof(new->model), &minor)) {
		g->len--;
		return 0;
	}
	snprintf(new->pci, sizeof(new->pci), "%s", pci);
	snprintf(new->node, sizeof(new->node), "/dev/nvidia%u", minor);
	new->facts = buf_take(&facts);
	return new->facts ? 0 : -ENOMEM;
}

/* Where the driver says nothing (WSL, containers): by the nodes alone. */
static int add_nvidia_node(struct gpus *g, const char *name)
{
	unsigned minor;
	struct gpu *new;

	if (!read_small(name + strlen("nvidia"), strlen(name) - strlen("nvidia"), &minor))
		return 0; /* nvidiactl, nvidia-uvm */
	new = add_gpu(g, GPU_NVIDIA);
	if (!new)
		return -ENOMEM;
	snprintf(new->node, sizeof(new->node), "/dev/nvidia%u", minor);
	return is_device(new->node) ? 0 : (g->len--, 0);
}

/* 0x1002 and a line's end. */
static bool read_vendor(const char *render, enum gpu_vendor *ret_vendor)
{
	char path[128];
	auto_buf text = { 0 };
	unsigned long number;

	snprintf(path, sizeof(path), "/sys/class/drm/%s/device/vendor", render);
	if (io_read_file(AT_FDCWD, path, 64, &text) < 0)
		return false;
	number = strtoul(buf_text(&text), NULL, 16);
	for (unsigned v = 0; v < GPU_VENDORS; v++)
		if (v != GPU_NVIDIA && vendors[v].pci == number) {
			*ret_vendor = (enum gpu_vendor)v;
			return true;
		}
	return false;
}

static int add_render(struct gpus *g, const char *name)
{
	char path[128], device[256];
	enum gpu_vendor vendor;
	const char *slash;
	struct gpu *new;
	ssize_t n;

	if (!read_vendor(name, &vendor))
		return 0;
	new = add_gpu(g, vendor);
	if (!new)
		return -ENOMEM;
	snprintf(new->node, sizeof(new->node), "/dev/dri/%s", name);
	snprintf(path, sizeof(path), "/sys/class/drm/%s/device", name);
	n = readlink(path, device, sizeof(device) - 1);
	device[n < 0 ? 0 : n] = '\0';
	slash = strrchr(device, '/');
	snprintf(new->pci, sizeof(new->pci), "%.20s", slash ? slash + 1 : device);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct gpu *x = a, *y = b;
	size_t nx = strlen(x->node), ny = strlen(y->node);
	int r;

	if (x->vendor != y->vendor)
		return x->vendor < y->vendor ? -1 : 1;
	r = strcmp(x->pci, y->pci);
	if (r != 0)
		return r;
	return nx != ny ? (nx < ny ? -1 : 1) : strcmp(x->node, y->node);
}

int gpus_find(struct gpus *ret_gpus, struct ward_err *e)
{
	struct gpus g = { 0 };
	int r = each_entry(GPUS_PROC "/gpus", "", add_nvidia, &g);

	if (r == 0 && g.len == 0)
		r = each_entry("/dev", "nvidia", add_nvidia_node, &g);
	if (r == 0)
		r = each_entry("/sys/class/drm", "renderD", add_render, &g);
	if (r < 0) {
		gpus_clear(&g);
		return ward_fail(e, ENOMEM,
				 "cannot list the GPUs: more than %d of them, or out of memory",
				 GPUS_MAX);
	}
	if (g.len)
		qsort(g.items, g.len, sizeof(*g.items), by_number);
	*ret_gpus = g;
	return 0;
}

void gpus_clear(struct gpus *g)
{
	for (size_t i = 0; i < g->len; i++)
		free(g->items[i].facts);
	free(g->items);
	*g = (struct gpus){ 0 };
}
