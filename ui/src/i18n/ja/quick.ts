import type { Messages } from '../types';

export const quick: Messages['quick'] = {
  open_in_main: 'メインウィンドウで開く',
  on_this_computer: 'このコンピューター上',
  no_model: 'モデルが選ばれていません',
  keys_note:
    'Inglenook がトレイに隠れていても、ほかのウィンドウの手前に小さなウィンドウを開きます。キーを設定するまではオフです。Wayland では、デスクトップがプログラムに直接キーを渡しません。デスクトップのキーボード設定で、コマンド「inglenook inglenook://quick」にキーを割り当ててください。',
};
