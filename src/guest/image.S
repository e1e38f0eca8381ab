/* The freestanding ward-init, ward-ask, and the stand-ins for the dynamic loader and for guarded
 * programs, as built beside this file. */
	.section .rodata
	.globl guest_init_begin, guest_init_end
	.hidden guest_init_begin, guest_init_end
	.balign 4096
guest_init_begin:
	.incbin WARD_INIT
guest_init_end:
	.byte 0
	.globl guest_loader_begin, guest_loader_end
	.hidden guest_loader_begin, guest_loader_end
	.balign 4096
guest_loader_begin:
	.incbin WARD_LOADER
guest_loader_end:
	.byte 0
	.globl guest_stand_in_begin, guest_stand_in_end
	.hidden guest_stand_in_begin, guest_stand_in_end
	.balign 4096
guest_stand_in_begin:
	.incbin WARD_STAND_IN
guest_stand_in_end:
	.byte 0
	.globl guest_ask_begin, guest_ask_end
	.hidden guest_ask_begin, guest_ask_end
	.balign 4096
guest_ask_begin:
	.incbin WARD_ASK
guest_ask_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
