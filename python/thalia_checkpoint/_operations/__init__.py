"""Operations on whole files; `thalia_checkpoint` imports each when it is first asked for."""
