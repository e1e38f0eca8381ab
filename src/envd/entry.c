/*
 * Entries (entry.h). In: a path of the sandbox. Out: JSON. Links are followed for type, size and
 * mode; a link says where it leads. A link to nothing has no type.
 */
#include "envd/entry.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/json.h"
#include "envd/person.h"

static const char *type_of(const struct stat *st, bool dangling)
{
	if (dangling)
		return "FILE_TYPE_UNSPECIFIED";
	return S_ISDIR(st->st_mode)   ? "FILE_TYPE_DIRECTORY"
	       : S_ISREG(st->st_mode) ? "FILE_TYPE_FILE"
				      : "FILE_TYPE_UNSPECIFIED";
}

/* "-rw-r--r--" as Go writes it: links are "L". */
static void permissions(const struct stat *link, mode_t mode, char ret[16])
{
	static const char bits[] = "rwxrwxrwx";

	ret[0] = S_ISLNK(link->st_mode) ? 'L' : S_ISDIR(link->st_mode) ? 'd' : '-';
	for (int i = 0; i < 9; i++)
		ret[i + 1] = mode & (0400u >> i) ? bits[i] : '-';
	ret[10] = '\0';
}

void entry_metadata(const char *path, struct buf *out)
{
	char names[65536], value[4097];
	struct json j = { .out = out };
	ssize_t n = listxattr(path, names, sizeof(names));
	size_t prefix = strlen(ENTRY_XATTR);

	json_begin_object(&j, NULL);
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t got;

		if (strncmp(names + at, ENTRY_XATTR, prefix) != 0)
			continue;
		got = getxattr(path, names + at, value, sizeof(value) - 1);
		if (got < 0)
			continue;
		value[got] = '\0';
		json_string(&j, names + at + prefix, value);
	}
	json_end_object(&j);
}

static void write_time(struct json *j, const struct stat *st)
{
	char text[64], whole[96];
	struct tm t;

	gmtime_r(&st->st_mtim.tv_sec, &t);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &t);
	snprintf(whole, sizeof(whole), "%s.%09ldZ", text, st->st_mtim.tv_nsec);
	json_string(j, "modifiedTime", whole);
}

int entry_write(const char *path, struct buf *out)
{
	char owner[64], group[64], modes[16], number[32], target[PATH_MAX];
	const char *name = strrchr(path, '/');
	struct json j = { .out = out };
	struct stat link, st;
	bool is_link, dangling;

	if (lstat(path, &link) < 0)
		return -errno;
	is_link = S_ISLNK(link.st_mode);
	dangling = is_link && stat(path, &st) < 0;
	if (!is_link || dangling)
		st = link;
	person_owner(st.st_uid, owner, sizeof(owner));
	person_group(st.st_gid, group, sizeof(group));
	permissions(&link, st.st_mode, modes);
	snprintf(number, sizeof(number), "%lld", (long long)st.st_size);
	json_begin_object(&j, NULL);
	json_string(&j, "name", name && name[1] ? name + 1 : path);
	json_string(&j, "type", type_of(&st, dangling));
	json_string(&j, "path", path);
	json_string(&j, "size", number);
	json_uint(&j, "mode", st.st_mode & 07777);
	json_string(&j, "permissions", modes);
	json_string(&j, "owner", owner);
	json_string(&j, "group", group);
	write_time(&j, &st);
	if (is_link && !dangling && realpath(path, target))
		json_string(&j, "symlinkTarget", target);
	if (S_ISREG(st.st_mode)) {
		auto_buf metadata = { 0 };

		entry_metadata(path, &metadata);
		if (metadata.len > 2) {
			buf_puts(out, ",\"metadata\":");
			buf_add(out, metadata.data, metadata.len);
		}
	}
	json_end_object(&j);
	return out->failed ? -ENOMEM : 0;
}
