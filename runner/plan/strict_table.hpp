// TOML tables in which every key must be known, and every error names file, section, key and what is allowed.
#pragma once

#include <toml++/toml.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace kestrel {

class StrictTable {
  public:
    // `section` is "" for the whole file. Throws Error{usage} at a key that is not in `known`. The table must outlive this.
    StrictTable(const toml::table& table, const std::string& file, const std::string& section,
                std::initializer_list<std::string_view> known);

    [[nodiscard]] bool has(std::string_view key) const { return table_->contains(key); }
    [[nodiscard]] const std::string& where() const { return where_; }

    [[nodiscard]] std::string text(std::string_view key) const;
    [[nodiscard]] std::string text(std::string_view key, const std::string& fallback) const;
    [[nodiscard]] int integer(std::string_view key, int fallback, int least, int most) const;
    // Integers count as numbers; least <= value <= most.
    [[nodiscard]] double number(std::string_view key, double least, double most) const;
    [[nodiscard]] double number(std::string_view key, double fallback, double least, double most) const;
    [[nodiscard]] const toml::table& table(std::string_view key) const;

  private:
    [[noreturn]] void refuse(std::string_view key, const std::string& expected) const;

    const toml::table* table_;
    std::string where_;
};

}  // namespace kestrel
