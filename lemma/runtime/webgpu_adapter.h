// Dawn's library, and the adapter it offers.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "lemma/base/result.h"
#include "lemma/runtime/device.h"
#include "lemma/runtime/webgpu_api.h"

namespace lemma::runtime {

// A handle of the library, released when it goes.
template <class T>
using WebGpuOwned = std::unique_ptr<std::remove_pointer_t<T>, void (*)(T)>;

struct WebGpuAdapter {
  webgpu::Functions functions{};
  WebGpuOwned<webgpu::Instance> instance{nullptr, nullptr};
  WebGpuOwned<webgpu::Adapter> adapter{nullptr, nullptr};
  webgpu::Limits limits{};
  DeviceInfo info;
};

base::Result<WebGpuAdapter> find_webgpu_adapter(const std::string& place);

// The text of a view, whichever way it says its length.
std::string webgpu_text(webgpu::StringView view);

}  // namespace lemma::runtime
