// What libraries beside the core may call.
#pragma once

// Note [Rooms of their own]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// Lazy tensors and prototypes of devices are libraries that are loaded when a program
// asks for them. They are linked to the core, of which nothing includes them. Functions
// of the core are hidden from other libraries, so that calls between them are direct,
// but for those that are declared with this.
#define XPURT_API __attribute__((visibility("default")))
