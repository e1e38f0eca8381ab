/*
 * ward image ls, rm and gc. In: names and digests. Out: the list, or what went. Runs with the
 * user's rights on the user's own store.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "image/image.h"
#include "image/store.h"
#include "policy/units.h"

static void list_json(const struct store_images *v, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_list(&j, "images");
	for (size_t i = 0; i < v->len; i++) {
		const struct store_image *s = &v->items[i];

		json_begin_object(&j, NULL);
		json_string(&j, "digest", s->digest);
		json_begin_array(&j, "names");
		for (size_t k = 0; k < s->names.len; k++)
			json_string(&j, NULL, s->names.items[k]);
		json_end_array(&j);
		json_string(&j, "source", s->source);
		json_uint(&j, "bytes", s->bytes);
		json_uint(&j, "files", s->files);
		json_uint(&j, "created", s->created);
		json_bool(&j, "in_use", s->in_use);
		json_end_object(&j);
	}
	json_end_list(&j);
}

static void list_text(const struct store_images *v, struct buf *out)
{
	for (size_t i = 0; i < v->len; i++) {
		const struct store_image *s = &v->items[i];
		char size[32];

		units_format_size(s->bytes, size, sizeof(size));
		buf_printf(out, "%-32s %.12s %10s %8llu files%s  ",
			   s->names.len ? s->names.items[0] : "-", s->digest, size,
			   (unsigned long long)s->files, s->in_use ? "  in use" : "");
		text_escape(out, s->source ? s->source : "");
		buf_puts(out, "\n");
		for (size_t k = 1; k < s->names.len; k++)
			buf_printf(out, "  also %s\n", s->names.items[k]);
	}
	if (!v->len)
		buf_puts(out,
			 "there are no images; ward image import and ward image pull add them\n");
}

int image_list(const struct image_options *o)
{
	struct store_images v = { 0 };
	struct ward_err e = { 0 };
	auto_buf out = { 0 };

	if (o->count) {
		ward_fail(&e, EINVAL, "ls takes no name");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (images_list(&v, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	(o->json ? list_json : list_text)(&v, &out);
	images_list_clear(&v);
	return say_out(&out, EXIT_FINE);
}

int image_remove(const struct image_options *o)
{
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	int code = EXIT_FINE;

	if (!o->count) {
		ward_fail(&e, EINVAL, "rm needs the name or digest of an image");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (o->json)
		json_begin_list(&j, "removed");
	for (size_t i = 0; i < o->count; i++) {
		bool removed = false;

		e = (struct ward_err){ 0 };
		if (image_is_path(o->words[i])) {
			ward_fail(&e, EINVAL, "%.200s is a path, not the name of an image",
				  o->words[i]);
			code = say_error(&e, o->json, EXIT_REFUSED);
		} else if (images_remove(o->words[i], &removed, &e) < 0) {
			ward_remedy(&e, e.code == EBUSY ? "end it first" : "see ward image ls");
			code = say_error(&e, o->json, EXIT_REFUSED);
		} else if (o->json) {
			json_string(&j, NULL, o->words[i]);
		} else {
			buf_printf(&out,
				   removed ? "removed %s\n"
					   : "removed the name %s, the image has others\n",
				   o->words[i]);
		}
	}
	if (o->json)
		json_end_list(&j);
	return say_out(&out, code);
}

int image_collect(const struct image_options *o)
{
	struct ward_err e = { 0 };
	uint64_t images = 0, bytes = 0;
	auto_buf out = { 0 };
	char size[32];

	if (o->count) {
		ward_fail(&e, EINVAL, "gc takes no name");
		return say_error(&e, o->json, EXIT_USAGE);
	}
	if (images_collect(&images, &bytes, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	units_format_size(bytes, size, sizeof(size));
	if (o->json)
		buf_printf(&out, "{\"removed\":%llu,\"bytes\":%llu}\n", (unsigned long long)images,
			   (unsigned long long)bytes);
	else
		buf_printf(&out, "removed %llu images without a name, %s\n",
			   (unsigned long long)images, size);
	return say_out(&out, EXIT_FINE);
}
