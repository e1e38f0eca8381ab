/* ward-init, loader.c, stand_in.c and ask.c as bytes, so that ward carries its own guest and looks
 * for no file. */
#ifndef WARD_GUEST_IMAGE_H
#define WARD_GUEST_IMAGE_H

extern const char guest_init_begin[], guest_init_end[];
extern const char guest_loader_begin[], guest_loader_end[];
extern const char guest_stand_in_begin[], guest_stand_in_end[];
extern const char guest_ask_begin[], guest_ask_end[];

#endif
