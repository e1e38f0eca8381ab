/*
 * What is in the store of compiled modules. In: STATE/wasm. Out: its entries, each looked at to its
 * end and compared with its seal. Nothing of it is run or parsed. Runs with the user's rights, for
 * `ward wasm`.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/wasm/wasm.h"

static enum wasm_state read_state(int dir_fd, const char *name, struct wasm_item *i)
{
	auto_fd fd = openat(dir_fd, name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_NOATIME | O_CLOEXEC);
	struct wasm_seal seal;

	if (strncmp(name, WASM_NEW_PREFIX, strlen(WASM_NEW_PREFIX)) == 0)
		return WASM_UNFINISHED;
	if (fd < 0 || !wasm_store_unseal(fd, &seal) || !wasm_store_is_intact(fd, &seal))
		return WASM_DAMAGED;
	if (strspn(seal.origin, "0123456789abcdef") == SHA256_HEX - 1)
		memcpy(i->module, seal.origin, SHA256_HEX);
	return seal.bytes ? WASM_FINE : WASM_NO_CODE;
}

static int add(struct wasm_items *v, const struct wasm_item *item)
{
	struct wasm_item *more = realloc(v->items, (v->len + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	more[v->len++] = *item;
	v->items = more;
	return 0;
}

static int order(const void *a, const void *b)
{
	return strcmp(((const struct wasm_item *)a)->name, ((const struct wasm_item *)b)->name);
}

int wasm_store_list(int dir_fd, struct wasm_items *ret, struct ward_err *e)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	auto_dir dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	*ret = (struct wasm_items){ 0 };
	if (!dir)
		return ward_fail_errno(e, "cannot read the store of compiled modules");
	while (r == 0 && (entry = readdir(dir))) {
		struct wasm_item i = { 0 };
		struct stat st;

		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    S_ISDIR(st.st_mode) || strlen(entry->d_name) >= sizeof(i.name))
			continue;
		snprintf(i.name, sizeof(i.name), "%s", entry->d_name);
		i.bytes = (uint64_t)st.st_size;
		i.used = st.st_atim.tv_sec;
		i.state = read_state(dir_fd, i.name, &i);
		r = add(ret, &i);
	}
	if (r < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	if (ret->len)
		qsort(ret->items, ret->len, sizeof(*ret->items), order);
	return 0;
}
