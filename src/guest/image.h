/* ward-init and loader.c as bytes, so that ward carries its own guest and looks for no file. */
#ifndef WARD_GUEST_IMAGE_H
#define WARD_GUEST_IMAGE_H

extern const char guest_init_begin[], guest_init_end[];
extern const char guest_loader_begin[], guest_loader_end[];

#endif
