#include <functional>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <utility>

#include "formats/params/flights.h"
#include "io/system/process.h"
#include "thalia/formats/param_source.h"

namespace thalia {

struct ParamResolver::Impl {
  using Form = std::shared_ptr<const void>;

  struct Place {
    ParamKey key;
    std::string name;
    std::type_index type;
    friend bool operator==(const Place&, const Place&) = default;
  };
  // The key is a digest: forms of one parameter are few.
  struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept {
      return std::hash<ParamKey>()(place.key) ^ std::hash<std::string>()(place.name);
    }
  };
  using Forms = std::unordered_map<Place, Form, PlaceHash>;

  io::ThreadLock mutex;
  Forms forms;
  std::uint64_t forgotten = 0;  ///< calls of forget() and clear()
  formats::params::Flights<Place, Form, PlaceHash> flights{mutex};

  // Destroyed without the lock: what a form holds may be anything.
  std::size_t let_go(const std::function<bool(const Place&)>& goes) {
    Forms gone;
    const std::lock_guard lock(mutex);
    ++forgotten;
    for (auto form = forms.begin(); form != forms.end();) {
      const auto next = std::next(form);
      if (goes(form->first)) gone.insert(forms.extract(form));
      form = next;
    }
    return gone.size();
  }
};

ParamResolver::ParamResolver() : impl_(std::make_shared<Impl>()) {}

std::shared_ptr<const void> ParamResolver::resolve_any(
    ParamKey key, std::string_view form, const std::type_info& type,
    const std::function<std::shared_ptr<const void>()>& make) const {
  Impl& impl = *impl_;
  const Impl::Place place{.key = key, .name = std::string(form), .type = type};
  std::uint64_t forgotten_before = 0;
  const auto kept = [&]() -> std::optional<Impl::Form> {
    const auto found = impl.forms.find(place);
    forgotten_before = impl.forgotten;
    return found == impl.forms.end() ? std::nullopt : std::optional(found->second);
  };
  // It may be of numbers that were there before forget().
  const auto keep = [&](const Impl::Form& made) {
    if (impl.forgotten == forgotten_before) impl.forms.emplace(place, made);
  };
  return impl.flights.once(place, kept, make, keep).first;
}

std::size_t ParamResolver::size() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->forms.size();
}

std::size_t ParamResolver::forget(ParamKey key) const {
  return impl_->let_go([&](const Impl::Place& place) { return place.key == key; });
}

std::size_t ParamResolver::clear() const {
  return impl_->let_go([](const Impl::Place&) { return true; });
}

}  // namespace thalia
