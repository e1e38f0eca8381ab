/*
 * The JSON of images. In: untrusted bytes. Out: the few members that ward uses, checked. Runs in
 * the confined worker. Everything else is left alone, as the specification wants it; a member of
 * the wrong type, a digest that is no SHA-256, a number out of range, and more layers or variables
 * than any image has are refused. Nothing that is read here is a path yet: digests name blobs,
 * docker's names are cleaned by entry.c.
 */
#include "image/manifest.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "policy/node.h"

#define STRINGS_MAX 1024
#define STRING_BYTES_MAX 32768
#define BLOB_BYTES_MAX (UINT64_C(1) << 40)

static int parse(const uint8_t *bytes, size_t n, const char *what, struct node **ret,
		 struct ward_err *e)
{
	struct reader r = { .name = what, .e = e };

	if (n > MANIFEST_BYTES_MAX)
		return ward_fail(e, EFBIG, "%s has more than 1 MiB", what);
	*ret = json_read(&r, bytes, n);
	if (*ret && r.count == 0 &&
	    (*ret)->kind == (strcmp(what, "manifest.json") == 0 ? NODE_LIST : NODE_MAP))
		return 0;
	if (!e->code)
		ward_fail(e, EINVAL, "it is not the expected JSON");
	node_free(*ret);
	*ret = NULL;
	return ward_wrap(e, "%s", what);
}

/* A member, NULL where it is missing or null. */
static const struct node *member(const struct node *map, const char *key)
{
	const struct node *n = map && map->kind == NODE_MAP ? node_get(map, key) : NULL;

	return n && n->kind != NODE_NULL ? n : NULL;
}

static const char *text_of(const struct node *map, const char *key)
{
	const struct node *n = member(map, key);

	return n && n->kind == NODE_STRING ? n->text : NULL;
}

int digest_read(const char *text, char ret_hex[DIGEST_HEX], struct ward_err *e)
{
	const char *hex = text && strncmp(text, "sha256:", 7) == 0 ? text + 7 : NULL;

	if (!hex || strlen(hex) != DIGEST_HEX - 1 ||
	    strspn(hex, "0123456789abcdef") != DIGEST_HEX - 1) {
		auto_buf shown = { 0 };

		text_escape(&shown, text ? text : "nothing");
		return ward_fail(e, EINVAL, "a digest is not of the form sha256:HEX: %.100s",
				 buf_text(&shown));
	}
	memcpy(ret_hex, hex, DIGEST_HEX);
	return 0;
}

static int read_size(const struct node *n, uint64_t *ret, struct ward_err *e)
{
	uint64_t value = 0;

	if (!n || n->kind != NODE_NUMBER || strspn(n->text, "0123456789") != strlen(n->text) ||
	    strlen(n->text) > 15)
		return ward_fail(e, EINVAL, "the size of a blob is not a number");
	for (const char *c = n->text; *c; c++)
		value = value * 10 + (uint64_t)(*c - '0');
	if (value > BLOB_BYTES_MAX)
		return ward_fail(e, EFBIG, "a blob of more than 1 TiB");
	*ret = value;
	return 0;
}

static int read_descriptor(const struct node *n, struct descriptor *ret, struct ward_err *e)
{
	int r = digest_read(text_of(n, "digest"), ret->digest, e);

	return r < 0 ? r : read_size(member(n, "size"), &ret->bytes, e);
}

static int read_strings(const struct node *list, const char *what, struct strv *out,
			struct ward_err *e)
{
	if (!list)
		return 0;
	if (list->kind != NODE_LIST || list->count > STRINGS_MAX)
		return ward_fail(e, EINVAL, "%s is not a list of at most %d strings", what,
				 STRINGS_MAX);
	for (const struct node *n = list->first; n; n = n->next) {
		if (n->kind != NODE_STRING || strlen(n->text) > STRING_BYTES_MAX)
			return ward_fail(
				e, EINVAL,
				"%s has an entry that is not a string of acceptable length", what);
		strv_add(out, n->text);
	}
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

/* Whether an entry of an index is for this machine: those that do not say are. */
static bool is_for_us(const struct node *entry)
{
	const struct node *platform = member(entry, "platform");
	const char *machine = text_of(platform, "architecture"), *os = text_of(platform, "os");

	return (!machine || strcmp(machine, "amd64") == 0) && (!os || strcmp(os, "linux") == 0);
}

static const char *ref_name(const struct node *entry)
{
	return text_of(member(entry, "annotations"), "org.opencontainers.image.ref.name");
}

static int choose(const struct node *list, const char *wanted, const struct node **ret,
		  struct ward_err *e)
{
	auto_buf names = { 0 };
	unsigned fits = 0;

	for (const struct node *n = list->first; n; n = n->next) {
		const char *name = ref_name(n);

		if (!is_for_us(n) || (wanted && (!name || strcmp(name, wanted) != 0)))
			continue;
		*ret = n;
		fits++;
		if (name)
			text_escape(&names, name);
		buf_puts(&names, " ");
	}
	if (fits == 1)
		return 0;
	if (fits == 0)
		return ward_fail(e, ENOENT,
				 wanted ? "the layout has no image of that name for linux on amd64"
					: "the index has no image for linux on amd64");
	ward_fail(e, EINVAL, "the layout holds %u images, and the path names none of them", fits);
	return ward_remedy(e, "append the name of one of them to the path, DIR:NAME: %.300s",
			   buf_text(&names));
}

int manifest_read_index(const uint8_t *bytes, size_t n, const char *wanted, struct descriptor *ret,
			bool *ret_nested, char **ret_name, struct ward_err *e)
{
	auto_node root = NULL;
	const struct node *list, *chosen = NULL;
	const char *type;
	int r = parse(bytes, n, "index.json", &root, e);

	if (r < 0)
		return r;
	list = member(root, "manifests");
	if (!list || list->kind != NODE_LIST || list->count > 1024)
		return ward_fail(e, EINVAL, "index.json has no list of manifests");
	r = choose(list, wanted, &chosen, e);
	if (r == 0)
		r = read_descriptor(chosen, ret, e);
	if (r < 0)
		return r;
	type = text_of(chosen, "mediaType");
	*ret_nested = type && (strstr(type, "image.index") || strstr(type, "manifest.list"));
	*ret_name = ref_name(chosen) ? strdup(ref_name(chosen)) : NULL;
	return 0;
}

static int check_layer_type(const struct node *layer, struct ward_err *e)
{
	static const char *const known[] = {
		"application/vnd.oci.image.layer.v1.tar",
		"application/vnd.oci.image.layer.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+zstd",
		"application/vnd.docker.image.rootfs.diff.tar",
		"application/vnd.docker.image.rootfs.diff.tar.gzip",
		"application/vnd.docker.image.rootfs.diff.tar.zstd",
	};
	const char *type = text_of(layer, "mediaType");
	auto_buf shown = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(known) && type; i++)
		if (strcmp(type, known[i]) == 0)
			return 0;
	text_escape(&shown, type ? type : "nothing");
	return ward_fail(e, ENOTSUP, "a layer is of a type that ward does not unpack: %.200s",
			 buf_text(&shown));
}

int manifest_read(const uint8_t *bytes, size_t n, struct layers *ret, struct ward_err *e)
{
	auto_node root = NULL;
	const struct node *list;
	int r = parse(bytes, n, "the manifest", &root, e);

	if (r < 0)
		return r;
	list = member(root, "layers");
	if (!list || list->kind != NODE_LIST || list->count > MANIFEST_LAYERS_MAX)
		return ward_fail(e, EINVAL, "the manifest has no list of at most %d layers",
				 MANIFEST_LAYERS_MAX);
	ret->items = calloc(list->count + 1, sizeof(*ret->items));
	if (!ret->items)
		return ward_fail(e, ENOMEM, "out of memory");
	r = read_descriptor(member(root, "config"), &ret->config, e);
	for (const struct node *layer = list->first; layer && r == 0; layer = layer->next) {
		r = check_layer_type(layer, e);
		if (r == 0)
			r = read_descriptor(layer, &ret->items[ret->len++], e);
	}
	return r;
}

static int read_wish(const struct node *config, struct image_wish *w, struct ward_err *e)
{
	const char *user = text_of(config, "User"), *workdir = text_of(config, "WorkingDir");
	int r = read_strings(member(config, "Env"), "Env", &w->env, e);

	if (r == 0)
		r = read_strings(member(config, "Entrypoint"), "Entrypoint", &w->entrypoint, e);
	if (r == 0)
		r = read_strings(member(config, "Cmd"), "Cmd", &w->cmd, e);
	if (r < 0)
		return r;
	if ((user && strlen(user) > 255) || (workdir && strlen(workdir) > 4000))
		return ward_fail(e, EINVAL, "User or WorkingDir is too long");
	w->user = user && *user ? strdup(user) : NULL;
	w->workdir = workdir && *workdir ? strdup(workdir) : NULL;
	for (size_t i = 0; i < w->env.len; i++)
		if (*w->env.items[i] == '=' || !strchr(w->env.items[i], '='))
			return ward_fail(e, EINVAL, "Env has an entry that is not NAME=VALUE");
	return 0;
}

int manifest_read_config(const uint8_t *bytes, size_t n, struct image_wish *ret,
			 struct strv *diff_ids, struct ward_err *e)
{
	auto_node root = NULL;
	const char *machine, *os;
	int r = parse(bytes, n, "the configuration", &root, e);

	if (r < 0)
		return r;
	machine = text_of(root, "architecture");
	os = text_of(root, "os");
	if ((machine && *machine && strcmp(machine, "amd64") != 0) ||
	    (os && *os && strcmp(os, "linux") != 0))
		return ward_fail(e, ENOTSUP,
				 "the image is for %.40s on %.40s, this machine is linux on amd64",
				 os ? os : "linux", machine ? machine : "?");
	r = read_strings(member(member(root, "rootfs"), "diff_ids"), "rootfs.diff_ids", diff_ids,
			 e);
	if (r == 0 && member(root, "config"))
		r = read_wish(member(root, "config"), ret, e);
	return r;
}

static bool has_tag(const struct node *image, const char *wanted)
{
	const struct node *tags = member(image, "RepoTags");

	for (const struct node *n = tags && tags->kind == NODE_LIST ? tags->first : NULL; n;
	     n = n->next)
		if (n->kind == NODE_STRING && strcmp(n->text, wanted) == 0)
			return true;
	return false;
}

int manifest_read_docker(const uint8_t *bytes, size_t n, const char *wanted,
			 struct docker_image *ret, struct ward_err *e)
{
	auto_node root = NULL;
	const struct node *image = NULL;
	int r = parse(bytes, n, "manifest.json", &root, e);

	if (r < 0)
		return r;
	if (!wanted && root->count > 1) {
		ward_fail(e, EINVAL, "the archive holds %u images", root->count);
		return ward_remedy(e, "append the name of one of them to the path: FILE:NAME:TAG");
	}
	for (const struct node *i = root->first; i; i = i->next)
		if (!wanted || has_tag(i, wanted))
			image = i;
	if (!image || !text_of(image, "Config"))
		return ward_fail(e, ENOENT,
				 wanted ? "the archive has no image of that name"
					: "the archive's manifest.json names no image");
	ret->config = strdup(text_of(image, "Config"));
	r = read_strings(member(image, "Layers"), "Layers", &ret->layers, e);
	if (r == 0)
		r = read_strings(member(image, "RepoTags"), "RepoTags", &ret->tags, e);
	if (r == 0 && ret->layers.len > MANIFEST_LAYERS_MAX)
		r = ward_fail(e, E2BIG, "more than %d layers", MANIFEST_LAYERS_MAX);
	return r < 0 || ret->config ? r : ward_fail(e, ENOMEM, "out of memory");
}

void image_wish_clear(struct image_wish *w)
{
	strv_free(&w->env);
	strv_free(&w->entrypoint);
	strv_free(&w->cmd);
	free(w->user);
	free(w->workdir);
	*w = (struct image_wish){ 0 };
}

void docker_image_clear(struct docker_image *d)
{
	free(d->config);
	strv_free(&d->tags);
	strv_free(&d->layers);
	*d = (struct docker_image){ 0 };
}
