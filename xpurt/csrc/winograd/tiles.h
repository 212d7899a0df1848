// The tiles of a convolution of 3x3 with a stride of 1.
#pragma once

#include "lanes/kernels.h"

namespace xpurt {

// Images are in channels last, (images, height, width, channels), or in blocks of
// channels: (images, channels / block, height, width, block).
struct TiledConvolution {
  int64_t block;  // 0 in channels last
  int64_t images;
  int64_t in_channels;
  int64_t out_channels;
  int64_t height;
  int64_t width;
  int64_t padding_height;
  int64_t padding_width;

  int64_t out_height() const { return height + 2 * padding_height - 2; }
  int64_t out_width() const { return width + 2 * padding_width - 2; }
  int64_t tile_rows() const { return (out_height() + kResults - 1) / kResults; }
  int64_t tile_columns() const { return (out_width() + kResults - 1) / kResults; }
  // Adjacent channels of a pixel, of so many.
  int64_t adjacent(int64_t channels) const { return block > 0 ? block : channels; }

  int64_t tiles() const { return images * tile_rows() * tile_columns(); }
};

// Where the numbers of images are, in floats.
struct Places {
  // adjacent: channels of a pixel
  Places(int64_t adjacent, int64_t channels, int64_t height, int64_t width)
      : width(width),
        image(channels * height * width),
        pixel(adjacent),
        block(adjacent * height * width) {}

  int64_t of(int64_t index, int64_t y, int64_t x) const {
    return index * image + (y * width + x) * pixel;
  }

  int64_t width;
  int64_t image;  // from an image to the next
  int64_t pixel;
  int64_t block;  // from a block of a pixel to its next
};

// The image of a tile, and the first row and column of its results.
struct Tile {
  Tile(const TiledConvolution& conv, int64_t index)
      : image(index / (conv.tile_rows() * conv.tile_columns())),
        top(index / conv.tile_columns() % conv.tile_rows() * kResults),
        left(index % conv.tile_columns() * kResults) {}

  int64_t image;
  int64_t top;
  int64_t left;
};

// 36 matrices of adjacent rows. The distances are no powers of two: rows and matrices
// would share few sets of the caches.
struct Matrices {
  Matrices(int64_t rows, int64_t columns)
      : row_stride(columns + 16), stride(rows * row_stride + 16) {}

  int64_t size() const { return kProducts * stride; }

  int64_t row_stride;  // in floats
  int64_t stride;
};

}  // namespace xpurt
