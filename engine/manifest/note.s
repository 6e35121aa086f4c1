# Puts manifest.json, found in the directory the assembler runs in, into the ELF note that engine/abi.h describes
# (KESTREL_MANIFEST_SECTION, _NOTE_NAME, _NOTE_TYPE). An allocated note survives strip and is covered by the build id.
# No preprocessing: line markers would carry this file's path into the object.
    .section .note.kestrel.manifest, "a", %note
    .balign 4
    .long 8                                             # name size, with its null
    .long kestrel_manifest_end - kestrel_manifest_begin # description size
    .long 1                                             # type
    .asciz "kestrel"
    .globl kestrel_manifest_begin
    .hidden kestrel_manifest_begin
kestrel_manifest_begin:
    .incbin "manifest.json"
    .globl kestrel_manifest_end
    .hidden kestrel_manifest_end
kestrel_manifest_end:
    .balign 4
    .section .note.GNU-stack, "", %progbits
